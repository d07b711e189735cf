// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Reads and writes the two kinds of exchange file: `deltaproof.problem/1`, what a kernel was given, and
// `deltaproof.result/1`, what came out, both safetensors. Tensors keep their bits; shapes are those of
// oracle/problem.hpp, with rows of k counted T*n and chunks of C rows restarting at each sequence. What is unknown is
// noted in `notes` and ignored; an unknown value of a known key, a wrong shape, NaN or infinity in an input are
// errors that name the file. It exists so that no other part of the project knows what a file looks like.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deltaproof/algebra/tensor.hpp"
#include "deltaproof/files/safetensors.hpp"
#include "deltaproof/files/stage_table.hpp"
#include "deltaproof/oracle/problem.hpp"

namespace deltaproof {

inline constexpr std::string_view problem_format = "deltaproof.problem/1";
inline constexpr std::string_view result_format = "deltaproof.result/1";

/// How a result was computed: chunkwise, token by token, or as a reference.
enum class path_kind { chunk, recurrent, reference };
/// Order of the last two axes of final_state.
enum class layout_kind { kv, vk };

inline constexpr detail::kind_names<path_kind, 3> path_names{{
    {path_kind::chunk, "chunk"},
    {path_kind::recurrent, "recurrent"},
    {path_kind::reference, "reference"},
}};
inline constexpr detail::kind_names<layout_kind, 2> layout_names{{
    {layout_kind::kv, "kv"},
    {layout_kind::vk, "vk"},
}};

[[nodiscard]] inline std::string_view name_of(path_kind path) { return detail::name_in(path_names, path); }
[[nodiscard]] inline std::string_view name_of(layout_kind layout) { return detail::name_in(layout_names, layout); }
/// Throws: format_error that lists the names there are.
[[nodiscard]] inline path_kind path_named(std::string_view name) { return detail::named_in(path_names, "path", name); }
[[nodiscard]] inline layout_kind layout_named(std::string_view name) {
  return detail::named_in(layout_names, "state_layout", name);
}

struct result {
  tensor o;                                 ///< [B, T, HV, V]; without a shape in a result of gradients alone
  std::optional<tensor> final_state;        ///< as stored: [N, HV, K, V], or [N, HV, V, K] for layout vk
  std::map<std::string, tensor> stages;     ///< by the names in stage_names; may be empty
  std::map<std::string, tensor> gradients;  ///< by gradient_names, of the shapes of what they are gradients of; may be empty
  std::map<std::string, tensor> backward_stages;  ///< by backward_stage_names; may be empty
  std::string kernel;                             ///< empty if not stated, as producer
  std::optional<path_kind> path;                  ///< nothing if not stated
  std::optional<std::size_t> chunk_size;          ///< C, in rows of k
  layout_kind state_layout = layout_kind::kv;
  std::string problem_sha256;  ///< lower-case hex of the problem file; empty if not stated
  std::string producer;
  /// Keys of the file that mean nothing to a kernel's result: what `oracle` says of a reference, and unknown ones.
  std::map<std::string, std::string> metadata;

  /// Whether there is an o: a backward pass by itself has none.
  [[nodiscard]] bool has_outputs() const { return o.shape().size() == 4; }
  /// final_state in (K, V) order, transposed if it is stored as vk; nothing if there is none.
  [[nodiscard]] std::optional<tensor> final_state_kv() const;
};

/// chunk where the result says so or states a chunk_size, else recurrent.
[[nodiscard]] path_kind path_of(const result& r);

using notes_list = std::vector<std::string>;

/// Reads a problem and validates it; what was ignored is appended to `notes`. Absent scale: default_scale(K).
/// Throws: format_error, shape_error, domain_error.
[[nodiscard]] problem read_problem(const std::filesystem::path& path, notes_list& notes);
[[nodiscard]] problem parse_problem(const safetensors_file& file, notes_list& notes);

/// Checks that `r` is a result of `p`, which passes its own validate: the shapes of o, final_state and the stages, floating-point
/// formats, and a chunk_size where a stage's shape follows from it. Values are not looked at: NaN is for the judge.
/// Throws: shape_error, format_error, each opening with `where`.
void validate(const result& r, const problem& p, std::string_view where);

/// Reads a result of `p`, whose file has the hash `problem_sha256` (see sha256_hex), and checks shapes against it. A hash
/// that differs is an error, an absent one a note. Without o there must be a gradient, and nothing but gradients is read.
/// Throws: as validate.
[[nodiscard]] result read_result(const std::filesystem::path& path, const problem& p, std::string_view problem_sha256,
                                 notes_list& notes);
[[nodiscard]] result parse_result(const safetensors_file& file, const problem& p, std::string_view problem_sha256,
                                  notes_list& notes);

/// The bytes of a problem file: tensors bit for bit, every key spelled out. Throws: as validate.
[[nodiscard]] std::string problem_bytes(const problem& p, const safetensors_metadata& extra = {});
/// Writes problem_bytes to `path` (by rename) with `extra` keys after the known ones.
void write_problem(const std::filesystem::path& path, const problem& p, const safetensors_metadata& extra = {});

/// The bytes of a result file, with `extra` keys and tensors (by their names) after the known ones.
[[nodiscard]] std::string result_bytes(const result& r, const safetensors_metadata& extra = {},
                                       std::span<const tensor> extra_tensors = {});
/// Writes a result (by rename), with `extra` keys and tensors (by their names) after the known ones.
void write_result(const std::filesystem::path& path, const result& r, const safetensors_metadata& extra = {},
                  std::span<const tensor> extra_tensors = {});

/// What a result file says besides its tensors, with `extra` keys after the known ones.
[[nodiscard]] safetensors_metadata result_metadata(const result& r, const safetensors_metadata& extra = {});

/// The name of part `c` of the unevaluated sum that a reference may store for `name`: o, o_lo, o_lo2, o_lo3, ...
[[nodiscard]] std::string part_name(std::string_view name, std::size_t c);
/// Those parts of `file`, as far as they are numbered without a gap: F64 tensors of one shape where there are several; none
/// where there is no tensor `name`. What judges a result reads the first alone. Throws: format_error, shape_error.
[[nodiscard]] std::vector<tensor> sum_parts(const safetensors_file& file, std::string_view name);

/// The shape of a stage, forward or backward, of a kernel with chunks of C rows, and that shape in letters: "[B, T*n, HV, C]".
/// Throws: domain_error for what is no stage.
struct stage_shape {
  std::vector<std::size_t> shape;
  std::string_view letters;
};
[[nodiscard]] stage_shape shape_of_stage(std::string_view name, const problem& p, std::size_t chunk_size);

/// NT of stage h: the chunks of C rows in one batch of `p`, sum over its sequences of ceil(tokens * n / C).
[[nodiscard]] std::size_t chunk_count(const problem& p, std::size_t chunk_size);

}  // namespace deltaproof
