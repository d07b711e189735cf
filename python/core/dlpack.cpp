// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "dlpack.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "deltaproof/files/safetensors.hpp"

namespace py = pybind11;

namespace deltaproof::python {
namespace {

// The names are those of dlpack.h.
struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

constexpr std::int32_t on_cpu = 1;
constexpr std::int32_t on_cpu_pinned = 3;

/// Element types as DLPack and the buffer protocol name them. No width stands twice under one name.
struct element_type {
  std::string_view dtype;  ///< in safetensors
  std::uint8_t code;
  std::uint8_t bits;
  std::string_view buffer;  ///< letters of Python's struct module
};
constexpr std::array<element_type, 8> element_types{{
    {"BF16", 4, 16, ""},
    {"F16", 2, 16, "e"},
    {"F32", 2, 32, "f"},
    {"F64", 2, 64, "d"},
    {"F8_E4M3", 10, 8, ""},
    {"F8_E5M2", 12, 8, ""},
    {"I64", 0, 64, "ql"},
    {"I32", 0, 32, "i"},
}};

const element_type& type_named(const std::string& dtype, const std::string& name) {
  for (const element_type& one : element_types) {
    if (one.dtype == dtype) return one;
  }
  throw format_error(name + ": no element type " + in_quotes(dtype) +
                     "; the types are BF16, F16, F32, F64, F8_E4M3, F8_E5M2 and I64");
}

/// What a tensor of another library looks like; strides in bytes.
struct view {
  const std::byte* data = nullptr;
  std::vector<std::size_t> shape;
  std::vector<std::ptrdiff_t> strides;
};

bool row_major(const view& v, std::size_t width) {
  std::size_t expected = width;
  for (std::size_t axis = v.shape.size(); axis-- > 0;) {
    if (v.shape[axis] != 1 && v.strides[axis] != static_cast<std::ptrdiff_t>(expected)) return false;
    expected *= v.shape[axis];
  }
  return true;
}

std::unique_ptr<std::byte[]> gathered(const view& v, std::size_t count, std::size_t width) {
  std::unique_ptr<std::byte[]> out(new std::byte[count * width]);
  const std::size_t rank = v.shape.size();
  std::vector<std::size_t> index(rank, 0);
  const std::byte* from = v.data;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out.get() + i * width, from, width);
    for (std::size_t axis = rank; axis-- > 0;) {
      from += v.strides[axis];
      if (++index[axis] < v.shape[axis]) break;
      from -= v.strides[axis] * static_cast<std::ptrdiff_t>(v.shape[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

tensor made(const element_type& type, const view& v, shared_bytes owner, const std::string& name) {
  const std::size_t width = type.bits / 8U, count = element_count(v.shape);
  if (count == 0) owner.reset(new std::byte[1]);
  if (count > 0 && !row_major(v, width)) owner = gathered(v, count, width);
  if (type.dtype == "I32") {
    std::vector<std::int64_t> wide(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, owner.get() + i * width, width);
      wide[i] = narrow;
    }
    return tensor::from_integers(v.shape, wide, name);
  }
  if (type.dtype == "I64") return tensor::integers(v.shape, std::move(owner), count * width, name);
  for (const named_format& row : formats) {
    if (row.dtype == type.dtype) return tensor(row.value, v.shape, std::move(owner), count * width, name);
  }
  throw format_error(name + ": there is no number format for the element type " + std::string(type.dtype));
}

std::string no_format(const std::string& name, const std::string& what) {
  return name + ": " + what +
         " is not a number format of the exchange files; use bfloat16, float16, float32 or float64 (offsets: int64)";
}

std::size_t extent(std::ptrdiff_t given, const std::string& name) {
  if (given < 0) throw shape_error(name + ": a negative extent " + std::to_string(given));
  return static_cast<std::size_t>(given);
}

/// What a capsule of ours keeps alive.
struct exported {
  DLManagedTensor managed{};
  shared_bytes bytes;
  std::vector<std::int64_t> shape;
};

}  // namespace

tensor from_dlpack(py::capsule capsule, const std::string& name, const std::string& dtype) {
  if (std::strcmp(capsule.name(), "dltensor") != 0)
    throw format_error(name + ": got the capsule " + in_quotes(capsule.name()) +
                       "; give a DLPack capsule that was not used before");
  auto* managed = capsule.get_pointer<DLManagedTensor>();
  const DLTensor& given = managed->dl_tensor;
  if (given.device.device_type != on_cpu && given.device.device_type != on_cpu_pinned) {
    throw format_error(name + ": lies in the memory of another device (DLPack type " + std::to_string(given.device.device_type) +
                       "); pass it through .cpu()");
  }
  const element_type* type = nullptr;
  if (!dtype.empty()) {
    type = &type_named(dtype, name);
    if (type->bits != given.dtype.bits)
      throw format_error(name + ": " + std::to_string(given.dtype.bits) + " bits an element cannot be read as " + dtype);
  } else {
    for (const element_type& one : element_types) {
      if (one.code == given.dtype.code && one.bits == given.dtype.bits) type = &one;
    }
  }
  if (type == nullptr || given.dtype.lanes != 1) {
    throw format_error(no_format(
        name, "DLPack type " + std::to_string(given.dtype.code) + " with " + std::to_string(given.dtype.bits) + " bits"));
  }
  const auto rank = static_cast<std::size_t>(given.ndim);
  view v;
  v.data = static_cast<const std::byte*>(given.data) + given.byte_offset;
  for (std::size_t axis = 0; axis < rank; ++axis) v.shape.push_back(extent(given.shape[axis], name));
  const std::ptrdiff_t width = type->bits / 8;
  v.strides.resize(rank);
  std::ptrdiff_t next = width;
  for (std::size_t axis = rank; axis-- > 0;) {
    v.strides[axis] = given.strides == nullptr ? next : static_cast<std::ptrdiff_t>(given.strides[axis]) * width;
    next *= static_cast<std::ptrdiff_t>(v.shape[axis]);
  }
  // From here on the capsule is used up and its tensor is ours to give back, from whichever thread lets go last.
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  shared_bytes owner(v.data, [managed](const std::byte*) {
    if (managed->deleter == nullptr || Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    managed->deleter(managed);
  });
  return made(*type, v, std::move(owner), name);
}

tensor from_buffer(const py::buffer& buffer, const std::string& name, const std::string& dtype) {
  auto info = std::make_shared<py::buffer_info>(buffer.request());
  const element_type* type = nullptr;
  if (!dtype.empty()) {
    type = &type_named(dtype, name);
  } else {
    const std::string& letters = info->format;
    const std::string letter =
        letters.size() == 2 && (letters[0] == '<' || letters[0] == '=' || letters[0] == '@') ? letters.substr(1) : letters;
    for (const element_type& one : element_types) {
      if (letter.size() == 1 && one.buffer.find(letter[0]) != std::string_view::npos) type = &one;
    }
  }
  if (type == nullptr || info->itemsize != type->bits / 8)
    throw format_error(no_format(name, "element type " + in_quotes(info->format) + " of the buffer protocol"));
  view v;
  v.data = static_cast<const std::byte*>(info->ptr);
  for (const py::ssize_t n : info->shape) v.shape.push_back(extent(n, name));
  v.strides.assign(info->strides.begin(), info->strides.end());
  shared_bytes owner(v.data, [info](const std::byte*) mutable {
    if (Py_IsInitialized() == 0) return;
    const py::gil_scoped_acquire gil;
    info.reset();
  });
  info.reset();  // the last reference must go with the interpreter locked
  return made(*type, v, std::move(owner), name);
}

py::capsule to_dlpack(const tensor& t) {
  const element_type& type = type_named(t.dtype(), t.name());
  auto out = std::make_unique<exported>();
  out->shape.assign(t.shape().begin(), t.shape().end());
  const std::span<const std::byte> bytes = t.bytes();
  // Aligned, too: tensors of a file may begin anywhere, and readers of DLPack expect elements at multiples of their size.
  std::unique_ptr<std::byte[]> copy(new std::byte[bytes.size() + 1]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  out->bytes = shared_bytes(std::move(copy));
  DLTensor& given = out->managed.dl_tensor;
  given.data = const_cast<std::byte*>(out->bytes.get());
  given.device = {on_cpu, 0};
  given.ndim = static_cast<std::int32_t>(out->shape.size());
  given.dtype = {type.code, type.bits, 1};
  given.shape = out->shape.data();
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) { delete static_cast<exported*>(self->manager_ctx); };
  DLManagedTensor* managed = &out.release()->managed;
  return py::capsule(managed, "dltensor", [](PyObject* capsule) {
    if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // taken over
    auto* unused = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    unused->deleter(unused);
  });
}

py::tuple dlpack_device() { return py::make_tuple(on_cpu, 0); }

}  // namespace deltaproof::python
