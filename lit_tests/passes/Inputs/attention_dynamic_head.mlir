#q = affine_map<(m, n, k1, k2) -> (m, k1)>
#k = affine_map<(m, n, k1, k2) -> (k2, k1)>
#v = affine_map<(m, n, k1, k2) -> (k2, n)>
#s = affine_map<(m, n, k1, k2) -> ()>
#o = affine_map<(m, n, k1, k2) -> (m, n)>
func.func @main(%q: tensor<32x?xf32>, %k: tensor<32x?xf32>, %v: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %scale = arith.constant 0.125 : f32
  %init = tensor.empty() : tensor<32x16xf32>
  %out = iree_linalg_ext.attention <indexing_maps = [#q, #k, #v, #s, #o]>
      ins(%q, %k, %v, %scale : tensor<32x?xf32>, tensor<32x?xf32>, tensor<32x16xf32>, f32)
      outs(%init : tensor<32x16xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<32x16xf32>
  return %out : tensor<32x16xf32>
}
