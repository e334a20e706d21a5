# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named pipelines, used in pipeline text like a pass."""

PIPELINES: dict[str, str] = {
    "prepass-default": "prepass.pipelines.default:PIPELINE",
    "prepass-sdxl": "prepass.pipelines.sdxl:PIPELINE",
    "prepass-llm": "prepass.pipelines.llm:PIPELINE",
    "prepass-flux": "prepass.pipelines.flux:PIPELINE",
}
