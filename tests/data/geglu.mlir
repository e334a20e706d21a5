// GEGLU of SDXL as torch exports it: one projection whose halves are the value and the gate.
func.func @main(%arg0: !torch.vtensor<[2,1024,640],f16>, %arg1: !torch.vtensor<[5120,640],f16>, %arg2: !torch.vtensor<[5120],f16>, %arg3: !torch.vtensor<[640,2560],f16>, %arg4: !torch.vtensor<[640],f16>) -> !torch.vtensor<[2,1024,640],f16> attributes {torch.assume_strict_symbolic_shapes} {
  %0 = torch.aten.linear %arg0, %arg1, %arg2 : !torch.vtensor<[2,1024,640],f16>, !torch.vtensor<[5120,640],f16>, !torch.vtensor<[5120],f16> -> !torch.vtensor<[2,1024,5120],f16>
  %int2560 = torch.constant.int 2560
  %int-1 = torch.constant.int -1
  %1 = torch.aten.split.Tensor %0, %int2560, %int-1 : !torch.vtensor<[2,1024,5120],f16>, !torch.int, !torch.int -> !torch.list<vtensor>
  %2:2 = torch.prim.ListUnpack %1 : !torch.list<vtensor> -> !torch.vtensor<[2,1024,2560],f16>, !torch.vtensor<[2,1024,2560],f16>
  %str = torch.constant.str "none"
  %3 = torch.aten.gelu %2#1, %str : !torch.vtensor<[2,1024,2560],f16>, !torch.str -> !torch.vtensor<[2,1024,2560],f16>
  %4 = torch.aten.mul.Tensor %2#0, %3 : !torch.vtensor<[2,1024,2560],f16>, !torch.vtensor<[2,1024,2560],f16> -> !torch.vtensor<[2,1024,2560],f16>
  %5 = torch.aten.linear %4, %arg3, %arg4 : !torch.vtensor<[2,1024,2560],f16>, !torch.vtensor<[640,2560],f16>, !torch.vtensor<[640],f16> -> !torch.vtensor<[2,1024,640],f16>
  return %5 : !torch.vtensor<[2,1024,640],f16>
}
