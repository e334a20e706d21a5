// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one work item computes of a matrix product: 16 sums in f32, with matrix instructions of the whole wave.
// Compiled to LLVM bitcode, it is linked into the program and inlined. kernel.py has the rest of the kernel.

typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float4 __attribute__((ext_vector_type(4)));

enum { BLOCKS = 4, ROWS = 16, TERMS = 16, PER_LANE = 4 };

// IREE passes a tensor as a base pointer, an offset in elements, and the strides that `strided_dims` names.
// `lhs` has 64 rows and `rhs` 64 columns, with `terms` contiguous elements each; `sums` has BLOCKS×PER_LANE.
__attribute__((visibility("hidden"), always_inline)) void example_matmul_f16(
    const _Float16 *lhs, long lhs_offset, long lhs_stride,
    const _Float16 *rhs, long rhs_offset, long rhs_stride,
    float *sums, long sums_offset, long sums_stride,
    long terms) {
  int item = __builtin_amdgcn_workitem_id_x();
  int lane = item % ROWS, group = item / ROWS % 4, wave = item / 64;
  const _Float16 *row = lhs + lhs_offset + (wave * ROWS + lane) * lhs_stride + group * PER_LANE;
  const _Float16 *column = rhs + rhs_offset + lane * rhs_stride + group * PER_LANE;
  float4 acc[BLOCKS] = {0};
  for (long k = 0; k < terms; k += TERMS) {
    half4 a = *(const half4 *)(row + k);
    for (int block = 0; block < BLOCKS; ++block) {
      half4 b = *(const half4 *)(column + block * ROWS * rhs_stride + k);
      acc[block] = __builtin_amdgcn_mfma_f32_16x16x16f16(b, a, acc[block], 0, 0, 0);
    }
  }
  for (int block = 0; block < BLOCKS; ++block)
    *(float4 *)(sums + sums_offset + block * sums_stride) = acc[block];
}
