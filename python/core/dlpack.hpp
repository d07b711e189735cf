// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Tensors to and from Python: `from_dlpack` and `from_buffer` take what torch, numpy, JAX and others hand over, `to_dlpack`
// gives one back. Contiguous memory is shared, never copied; other strides are gathered once into row-major order. The caller's
// memory is only read. It exists so that bf16 passes through Python, whose buffer protocol does not know it.
// Source: the binary layout of DLPack (dlpack.h of github.com/dmlc/dlpack, versions 0.2 to 1.1), unversioned capsules.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "deltaproof/algebra/tensor.hpp"

namespace deltaproof::python {

/// Takes the capsule over. `dtype`: a safetensors name that the elements are to be read as, of the same width; empty: as the
/// capsule says. I32 becomes I64. Throws: format_error for other memory than the CPU's or a dtype that no format has.
[[nodiscard]] tensor from_dlpack(pybind11::capsule capsule, const std::string& name, const std::string& dtype);

/// The same through the buffer protocol, which numpy has for read-only arrays too.
[[nodiscard]] tensor from_buffer(const pybind11::buffer& buffer, const std::string& name, const std::string& dtype);

/// A capsule of a copy: who gets it may write into it, and a tensor's bytes never change.
[[nodiscard]] pybind11::capsule to_dlpack(const tensor& t);

/// (1, 0): the CPU.
[[nodiscard]] pybind11::tuple dlpack_device();

}  // namespace deltaproof::python
