// SDXL: keys are projected, scaled and transposed, and meet the queries.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
module {
  func.func @main(%arg0: tensor<2x77x2048xf16>, %arg1: tensor<2x2048x640xf16>, %arg2: tensor<20x1024x64xf16>) -> tensor<20x1024x77xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.353553385 : f32
    %0 = tensor.empty() : tensor<2x77x640xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x77x640xf32>) -> tensor<2x77x640xf32>
    %2 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<2x77x2048xf16>, tensor<2x2048x640xf16>) outs(%1 : tensor<2x77x640xf32>) -> tensor<2x77x640xf32>
    %3 = tensor.empty() : tensor<2x77x640xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x77x640xf32>) outs(%3 : tensor<2x77x640xf16>) {
    ^bb0(%in: f32, %out: f16):
      %10 = arith.truncf %in : f32 to f16
      linalg.yield %10 : f16
    } -> tensor<2x77x640xf16>
    %5 = tensor.empty() : tensor<2x640x77xf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<2x77x640xf16>) outs(%5 : tensor<2x640x77xf16>) {
    ^bb0(%in: f16, %out: f16):
      %10 = arith.truncf %cst_0 : f32 to f16
      %11 = arith.mulf %in, %10 : f16
      linalg.yield %11 : f16
    } -> tensor<2x640x77xf16>
    %expanded = tensor.expand_shape %6 [[0], [1, 2], [3]] output_shape [2, 10, 64, 77] : tensor<2x640x77xf16> into tensor<2x10x64x77xf16>
    %collapsed = tensor.collapse_shape %expanded [[0, 1], [2], [3]] : tensor<2x10x64x77xf16> into tensor<20x64x77xf16>
    %7 = tensor.empty() : tensor<20x1024x77xf32>
    %8 = linalg.fill ins(%cst : f32) outs(%7 : tensor<20x1024x77xf32>) -> tensor<20x1024x77xf32>
    %9 = linalg.batch_matmul ins(%arg2, %collapsed : tensor<20x1024x64xf16>, tensor<20x64x77xf16>) outs(%8 : tensor<20x1024x77xf32>) -> tensor<20x1024x77xf32>
    return %9 : tensor<20x1024x77xf32>
  }
}
