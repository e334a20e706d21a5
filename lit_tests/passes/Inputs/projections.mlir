#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
util.func public @tiles(%x: tensor<256x128xf16>, %a: tensor<256x128xf16>, %b: tensor<256x128xf16>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  // A full tile for several results.
  %0 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %a : tensor<256x128xf16>, tensor<256x128xf16>) outs(%zero : tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %b : tensor<256x128xf16>, tensor<256x128xf16>) outs(%zero : tensor<256x256xf32>) -> tensor<256x256xf32>
  util.return %0, %1 : tensor<256x256xf32>, tensor<256x256xf32>
}

util.global private @a = #flow.parameter.named<"m"::"a"> : tensor<256x128xf16>
util.global private @b = #flow.parameter.named<"m"::"b"> : tensor<256x128xf16>
util.func public @odd(%x: tensor<77x128xf16>) -> (tensor<77x256xf32>, tensor<77x256xf32>) {
  %a = util.global.load @a : tensor<256x128xf16>
  %b = util.global.load @b : tensor<256x128xf16>

  // None for 77 rows.
  %zero = arith.constant dense<0.0> : tensor<77x256xf32>
  %0 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %a : tensor<77x128xf16>, tensor<256x128xf16>) outs(%zero : tensor<77x256xf32>) -> tensor<77x256xf32>
  %1 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %b : tensor<77x128xf16>, tensor<256x128xf16>) outs(%zero : tensor<77x256xf32>) -> tensor<77x256xf32>
  util.return %0, %1 : tensor<77x256xf32>, tensor<77x256xf32>
}

util.global private @c = #flow.parameter.named<"m"::"c"> : tensor<4096x4096xf16>
util.global private @d = #flow.parameter.named<"m"::"d"> : tensor<4096x4096xf16>
util.func public @decode(%x: tensor<1x4096xf16>) -> (tensor<1x4096xf32>, tensor<1x4096xf32>) {
  %a = util.global.load @c : tensor<4096x4096xf16>
  %b = util.global.load @d : tensor<4096x4096xf16>
  // One row.
  %zero = arith.constant dense<0.0> : tensor<1x4096xf32>

  %0 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %a : tensor<1x4096xf16>, tensor<4096x4096xf16>) outs(%zero : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  %1 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %b : tensor<1x4096xf16>, tensor<4096x4096xf16>) outs(%zero : tensor<1x4096xf32>) -> tensor<1x4096xf32>
  util.return %0, %1 : tensor<1x4096xf32>, tensor<1x4096xf32>
}

util.func public @dynamic(%x: tensor<?x128xf16>, %a: tensor<256x128xf16>, %b: tensor<256x128xf16>, %e: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>) {
  %zero = arith.constant 0.0 : f32
  // Any number of rows.

  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x256xf32>) -> tensor<?x256xf32>

  %0 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %a : tensor<?x128xf16>, tensor<256x128xf16>) outs(%f : tensor<?x256xf32>) -> tensor<?x256xf32>
  %1 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %b : tensor<?x128xf16>, tensor<256x128xf16>) outs(%f : tensor<?x256xf32>) -> tensor<?x256xf32>
  util.return %0, %1 : tensor<?x256xf32>, tensor<?x256xf32>
}

util.func public @narrow(%x: tensor<256x128xf16>, %a: tensor<256x128xf16>, %b: tensor<256x128xf16>) -> (tensor<256x256xf16>, tensor<256x256xf16>) {

  // Sums in f16.
  %zero = arith.constant dense<0.0> : tensor<256x256xf16>

  %0 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %a : tensor<256x128xf16>, tensor<256x128xf16>) outs(%zero : tensor<256x256xf16>) -> tensor<256x256xf16>
  %1 = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%x, %b : tensor<256x128xf16>, tensor<256x128xf16>) outs(%zero : tensor<256x256xf16>) -> tensor<256x256xf16>
  util.return %0, %1 : tensor<256x256xf16>, tensor<256x256xf16>
}
