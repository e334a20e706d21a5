func.func @f(%a: f32) -> f32 {
  // expected-remark @below {{not said}}
  // A remark is made below, and another one is expected.
  %0 = arith.addf %a, %a : f32
  return %0 : f32
} // expected-error {{not there}}
