# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searching for the best way to compile each op of a program, by compiling it and pricing the code.

`extract` takes the ops out of a program, `space` lists ways to compile each, `evaluate` compiles and prices one,
`executors` does that in many processes, `store` keeps what was found, and `sweep` puts them together.
"""
