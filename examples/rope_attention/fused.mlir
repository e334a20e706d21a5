// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same as separate.mlir, with both rotary embeddings fused into the attention by hand:
// a flow.dispatch.region around the three. Each lane then gathers the halves of its pairs
// two bytes at a time, and computes sines and cosines where it needs them. (Without the
// config of the pipeline it needs 139264 bytes of LDS, and does not compile.)
//
//   prepass-isa --compare separate.mlir fused.mlir --pipeline='builtin.module(prepass-configure-attention)'

func.func @main(
    %q: tensor<4608x24x128xbf16>, %k: tensor<4608x24x128xbf16>, %angles: tensor<4608x128xf32>,
    %v: tensor<24x128x4608xbf16>) -> tensor<24x4608x128xbf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %scale = arith.constant 8.837890e-02 : bf16
  %empty = tensor.empty() : tensor<24x4608x128xbf16>
  %r = flow.dispatch.region -> (tensor<24x4608x128xbf16>) {
    %rotated_q = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%angles : tensor<4608x128xf32>) outs(%empty : tensor<24x4608x128xbf16>) {
    ^bb0(%angle: f32, %out: bf16):
      %h = linalg.index 0 : index
      %t = linalg.index 1 : index
      %d = linalg.index 2 : index
      %pair = arith.divui %d, %c2 : index
      %odd = arith.remui %d, %c2 : index
      %first = arith.muli %pair, %c2 : index
      %second = arith.addi %first, %c1 : index
      %a16 = tensor.extract %q[%t, %h, %first] : tensor<4608x24x128xbf16>
      %b16 = tensor.extract %q[%t, %h, %second] : tensor<4608x24x128xbf16>
      %a = arith.extf %a16 : bf16 to f32
      %b = arith.extf %b16 : bf16 to f32
      %cos = math.cos %angle : f32
      %sin = math.sin %angle : f32
      %a_cos = arith.mulf %a, %cos : f32
      %b_sin = arith.mulf %b, %sin : f32
      %even_value = arith.subf %a_cos, %b_sin : f32
      %b_cos = arith.mulf %b, %cos : f32
      %a_sin = arith.mulf %a, %sin : f32
      %odd_value = arith.addf %b_cos, %a_sin : f32
      %even = arith.cmpi eq, %odd, %c0 : index
      %value = arith.select %even, %even_value, %odd_value : f32
      %value16 = arith.truncf %value : f32 to bf16
      linalg.yield %value16 : bf16
    } -> tensor<24x4608x128xbf16>
    %rotated_k = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]
    } ins(%angles : tensor<4608x128xf32>) outs(%empty : tensor<24x4608x128xbf16>) {
    ^bb0(%angle: f32, %out: bf16):
      %h = linalg.index 0 : index
      %t = linalg.index 1 : index
      %d = linalg.index 2 : index
      %pair = arith.divui %d, %c2 : index
      %odd = arith.remui %d, %c2 : index
      %first = arith.muli %pair, %c2 : index
      %second = arith.addi %first, %c1 : index
      %a16 = tensor.extract %k[%t, %h, %first] : tensor<4608x24x128xbf16>
      %b16 = tensor.extract %k[%t, %h, %second] : tensor<4608x24x128xbf16>
      %a = arith.extf %a16 : bf16 to f32
      %b = arith.extf %b16 : bf16 to f32
      %cos = math.cos %angle : f32
      %sin = math.sin %angle : f32
      %a_cos = arith.mulf %a, %cos : f32
      %b_sin = arith.mulf %b, %sin : f32
      %even_value = arith.subf %a_cos, %b_sin : f32
      %b_cos = arith.mulf %b, %cos : f32
      %a_sin = arith.mulf %a, %sin : f32
      %odd_value = arith.addf %b_cos, %a_sin : f32
      %even = arith.cmpi eq, %odd, %c0 : index
      %value = arith.select %even, %even_value, %odd_value : f32
      %value16 = arith.truncf %value : f32 to bf16
      linalg.yield %value16 : bf16
    } -> tensor<24x4608x128xbf16>
    %o = iree_linalg_ext.attention <{indexing_maps = [
      affine_map<(b, m, n, k1, k2) -> (b, m, k1)>, affine_map<(b, m, n, k1, k2) -> (b, k2, k1)>,
      affine_map<(b, m, n, k1, k2) -> (b, n, k2)>, affine_map<(b, m, n, k1, k2) -> ()>,
      affine_map<(b, m, n, k1, k2) -> (b, m, n)>]}>
      ins(%rotated_q, %rotated_k, %v, %scale
        : tensor<24x4608x128xbf16>, tensor<24x4608x128xbf16>, tensor<24x128x4608xbf16>, bf16)
      outs(%empty : tensor<24x4608x128xbf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
    } -> tensor<24x4608x128xbf16>
    flow.return %o : tensor<24x4608x128xbf16>
  }
  return %r : tensor<24x4608x128xbf16>
}
