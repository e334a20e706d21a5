# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a whole model costs and what is wrong with its graph, before it runs."""
