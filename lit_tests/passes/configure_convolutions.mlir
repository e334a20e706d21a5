// RUN: prepass-opt %s --pass-pipeline='builtin.module(prepass-configure-convolutions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NOTARGET
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-convolutions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=GFX942
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx1100 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-convolutions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER

// Idempotence: the second time the ops have their configs.
// RUN: prepass-compile %s --iree-hal-target-device=hip --iree-rocm-target=gfx942 --compile-to=executable-sources \
// RUN:   --iree-preprocessing-pass-pipeline='builtin.module(prepass-configure-convolutions)' \
// RUN:   | prepass-opt --pass-pipeline='builtin.module(prepass-configure-convolutions)' --prepass-remarks=all 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TWICE

// NOTARGET: missed: no target is known for the op
// NOTARGET-NOT: compilation_info
// OTHER: missed: IREE's default for gfx1100 is kept
// OTHER-NOT: compilation_info
// TWICE: missed: the op has a lowering config already

// GFX942-DAG: applied: configured for gfx942: matrix instructions pad its filters
// GFX942-DAG: missed: a size is dynamic
// GFX942-DAG: missed: its channels are not last, or its loops are in another order
// GFX942-DAG: missed: few products are summed up for each result
// GFX942-DAG: missed: no matrix instruction adds up products of i16 and i16 in i32

// A wave for each 16 pixels.
// GFX942: func.func @two_d_dispatch
// GFX942: compilation_info = #iree_codegen.compilation_info<lowering_config = #iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x16_F16>, padding = [1, 1, 32, 16, 64], padding_conv = [1, 1, 32, 16, 0, 0, 0], promote_operands = [0, 1], reduction = [0, 0, 0, 0, 4], subgroup = [1, 1, 1, 1, 0], workgroup = [1, 1, 32, 16, 0]}>
// GFX942-SAME: workgroup_size = [128, 1, 1]
// GFX942: func.func @one_d_dispatch
// GFX942: mma_layout<MFMA_F32_16x16x16_BF16>, padding = [1, 16, 16, 64], padding_conv = [1, 16, 16, 0, 0]
// GFX942: func.func @integers_dispatch
// GFX942: mma_layout<MFMA_I32_16x16x32_I8>, padding = [1, 1, 16, 16, 128]
// GFX942: func.func @dynamic_dispatch
// GFX942-NOT: compilation_info

func.func @two_d(%x: tensor<2x66x66x320xf16>, %w: tensor<4x3x3x320xf16>) -> tensor<2x64x64x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64x4xf32>) -> tensor<2x64x64x4xf32>
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<2x66x66x320xf16>, tensor<4x3x3x320xf16>) outs(%f : tensor<2x64x64x4xf32>) -> tensor<2x64x64x4xf32>
  return %conv : tensor<2x64x64x4xf32>
}

func.func @one_d(%x: tensor<2x66x64xbf16>, %w: tensor<3x64x2xbf16>) -> tensor<2x64x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x2xf32>) -> tensor<2x64x2xf32>
  %conv = linalg.conv_1d_nwc_wcf ins(%x, %w : tensor<2x66x64xbf16>, tensor<3x64x2xbf16>) outs(%f : tensor<2x64x2xf32>) -> tensor<2x64x2xf32>
  return %conv : tensor<2x64x2xf32>
}

func.func @integers(%x: tensor<2x10x10x64xi8>, %w: tensor<4x3x3x64xi8>) -> tensor<2x8x8x4xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2x8x8x4xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<2x8x8x4xi32>) -> tensor<2x8x8x4xi32>
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<2x10x10x64xi8>, tensor<4x3x3x64xi8>) outs(%f : tensor<2x8x8x4xi32>) -> tensor<2x8x8x4xi32>
  return %conv : tensor<2x8x8x4xi32>
}

func.func @dynamic(%x: tensor<?x10x10x64xf16>, %w: tensor<4x3x3x64xf16>, %f: tensor<?x8x8x4xf32>) -> tensor<?x8x8x4xf32> {
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<?x10x10x64xf16>, tensor<4x3x3x64xf16>) outs(%f : tensor<?x8x8x4xf32>) -> tensor<?x8x8x4xf32>
  return %conv : tensor<?x8x8x4xf32>
}

func.func @first(%x: tensor<2x64x10x10xf16>, %w: tensor<4x64x3x3xf16>, %f: tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32> {
  %conv = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x64x10x10xf16>, tensor<4x64x3x3xf16>) outs(%f : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %conv : tensor<2x4x8x8xf32>
}

func.func @few(%x: tensor<2x10x10x4xf16>, %w: tensor<4x3x3x4xf16>, %f: tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32> {
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<2x10x10x4xf16>, tensor<4x3x3x4xf16>) outs(%f : tensor<2x8x8x4xf32>) -> tensor<2x8x8x4xf32>
  return %conv : tensor<2x8x8x4xf32>
}

func.func @wide(%x: tensor<2x10x10x64xi16>, %w: tensor<4x3x3x64xi16>, %f: tensor<2x8x8x4xi32>) -> tensor<2x8x8x4xi32> {
  %conv = linalg.conv_2d_nhwc_fhwc ins(%x, %w : tensor<2x10x10x64xi16>, tensor<4x3x3x64xi16>) outs(%f : tensor<2x8x8x4xi32>) -> tensor<2x8x8x4xi32>
  return %conv : tensor<2x8x8x4xi32>
}
