// A projection is reshaped, extended by an op of its own, and projected again in f32.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @main(%arg0: tensor<1280x640xf16>, %arg1: tensor<640x2560xf16>, %arg2: tensor<2560x320xf16>) -> tensor<1280x320xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1280x2560xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1280x2560xf32>) -> tensor<1280x2560xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<1280x640xf16>, tensor<640x2560xf16>) outs(%1 : tensor<1280x2560xf32>) -> tensor<1280x2560xf32>
    %3 = tensor.empty() : tensor<1280x2560xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<1280x2560xf32>) outs(%3 : tensor<1280x2560xf16>) {
    ^bb0(%in: f32, %out: f16):
      %12 = arith.truncf %in : f32 to f16
      linalg.yield %12 : f16
    } -> tensor<1280x2560xf16>
    %collapsed = tensor.collapse_shape %4 [[0, 1]] : tensor<1280x2560xf16> into tensor<3276800xf16>
    %5 = tensor.empty() : tensor<3276800xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%collapsed : tensor<3276800xf16>) outs(%5 : tensor<3276800xf32>) {
    ^bb0(%in: f16, %out: f32):
      %12 = arith.extf %in : f16 to f32
      linalg.yield %12 : f32
    } -> tensor<3276800xf32>
    %expanded = tensor.expand_shape %6 [[0, 1]] output_shape [1280, 2560] : tensor<3276800xf32> into tensor<1280x2560xf32>
    %7 = tensor.empty() : tensor<2560x320xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : tensor<2560x320xf16>) outs(%7 : tensor<2560x320xf32>) {
    ^bb0(%in: f16, %out: f32):
      %12 = arith.extf %in : f16 to f32
      linalg.yield %12 : f32
    } -> tensor<2560x320xf32>
    %9 = tensor.empty() : tensor<1280x320xf32>
    %10 = linalg.fill ins(%cst : f32) outs(%9 : tensor<1280x320xf32>) -> tensor<1280x320xf32>
    %11 = linalg.matmul ins(%expanded, %8 : tensor<1280x2560xf32>, tensor<2560x320xf32>) outs(%10 : tensor<1280x320xf32>) -> tensor<1280x320xf32>
    return %11 : tensor<1280x320xf32>
  }
}
