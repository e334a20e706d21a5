// The feed-forward block of SDXL: a value, a gate through GELU, their product extended, and a projection in f32.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @main(%arg0: tensor<2x1024x640xf16>, %arg1: tensor<2x640x2560xf16>, %arg2: tensor<2x640x2560xf16>, %arg3: tensor<2x2560x640xf16>) -> tensor<2x1024x640xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 5.000000e-01 : f16
    %cst_1 = arith.constant 1.000000e+00 : f16
    %cst_2 = arith.constant 2.000000e+00 : f16
    %0 = tensor.empty() : tensor<2x1024x2560xf32>
    %1 = tensor.empty() : tensor<2x1024x2560xf16>
    %2 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x1024x2560xf32>) -> tensor<2x1024x2560xf32>
    %3 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<2x1024x640xf16>, tensor<2x640x2560xf16>) outs(%2 : tensor<2x1024x2560xf32>) -> tensor<2x1024x2560xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x1024x2560xf32>) outs(%1 : tensor<2x1024x2560xf16>) {
    ^bb0(%in: f32, %out: f16):
      %11 = arith.truncf %in : f32 to f16
      linalg.yield %11 : f16
    } -> tensor<2x1024x2560xf16>
    %5 = linalg.batch_matmul ins(%arg0, %arg2 : tensor<2x1024x640xf16>, tensor<2x640x2560xf16>) outs(%2 : tensor<2x1024x2560xf32>) -> tensor<2x1024x2560xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x1024x2560xf32>) outs(%1 : tensor<2x1024x2560xf16>) {
    ^bb0(%in: f32, %out: f16):
      %11 = arith.truncf %in : f32 to f16
      linalg.yield %11 : f16
    } -> tensor<2x1024x2560xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4, %6 : tensor<2x1024x2560xf16>, tensor<2x1024x2560xf16>) outs(%0 : tensor<2x1024x2560xf32>) {
    ^bb0(%in: f16, %in_3: f16, %out: f32):
      %11 = math.sqrt %cst_2 : f16
      %12 = arith.divf %in_3, %11 : f16
      %13 = math.erf %12 : f16
      %14 = arith.addf %13, %cst_1 : f16
      %15 = arith.mulf %14, %cst_0 : f16
      %16 = arith.mulf %in_3, %15 : f16
      %17 = arith.mulf %in, %16 : f16
      %18 = arith.extf %17 : f16 to f32
      linalg.yield %18 : f32
    } -> tensor<2x1024x2560xf32>
    %8 = tensor.empty() : tensor<2x1024x640xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<2x1024x640xf32>) -> tensor<2x1024x640xf32>
    %weight_empty = tensor.empty() : tensor<2x2560x640xf32>
    %weight = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg3 : tensor<2x2560x640xf16>) outs(%weight_empty : tensor<2x2560x640xf32>) {
    ^bb0(%in: f16, %out: f32):
      %wide = arith.extf %in : f16 to f32
      linalg.yield %wide : f32
    } -> tensor<2x2560x640xf32>
    %10 = linalg.batch_matmul ins(%7, %weight : tensor<2x1024x2560xf32>, tensor<2x2560x640xf32>) outs(%9 : tensor<2x1024x640xf32>) -> tensor<2x1024x640xf32>
    return %10 : tensor<2x1024x640xf32>
  }
}
