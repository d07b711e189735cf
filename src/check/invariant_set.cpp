// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/check/invariant_set.hpp"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "check/invariant_parts.hpp"
#include "deltaproof/support/read_file.hpp"

namespace deltaproof {
namespace {

using namespace invariant_detail;
using json = nlohmann::ordered_json;

constexpr size_limit manifest_limit{"a manifest", std::size_t{1} << 24};
constexpr const char* problem_end = ".problem.safetensors";
constexpr const char* result_end = ".result.safetensors";

/// Tokens [first, first + count) of a sequence; `begins`: a sequence of the new problem begins with them.
struct piece {
  const problem* from;
  std::size_t sequence, first, count;
  bool begins = true;
};

tensor gathered_rows(const std::vector<piece>& pieces, const tensor& (*of)(const problem&), std::size_t steps,
                     const std::string& name) {
  const tensor& like = of(*pieces.front().from);
  std::vector<std::size_t> shape = like.shape();
  shape[0] = 1;
  shape[1] = 0;
  std::vector<std::byte> bytes;
  for (const piece& x : pieces) {
    const std::size_t at = flat_token(*x.from, sequence_at(*x.from, x.sequence)) + x.first;
    const auto part = rows{&of(*x.from), at * steps, x.count * steps}.bytes();
    bytes.insert(bytes.end(), part.begin(), part.end());
    shape[1] += x.count * steps;
  }
  return {like.element_format(), shape, bytes, name};
}

/// The pieces as one problem, packed where they make several sequences. `starts`: with the initial states of the sequences.
problem gathered(const std::vector<piece>& pieces, bool starts) {
  const problem& like = *pieces.front().from;
  const std::size_t n = like.num_householder;
  problem out = like;
  out.q = gathered_rows(pieces, [](const problem& p) -> const tensor& { return p.q; }, 1, "q");
  out.k = gathered_rows(pieces, [](const problem& p) -> const tensor& { return p.k; }, n, "k");
  out.v = gathered_rows(pieces, [](const problem& p) -> const tensor& { return p.v; }, n, "v");
  out.beta = gathered_rows(pieces, [](const problem& p) -> const tensor& { return p.beta; }, n, "beta");
  if (like.g) out.g = gathered_rows(pieces, [](const problem& p) -> const tensor& { return *p.g; }, 1, "g");
  out.d_o.reset();
  out.d_final_state.reset();
  if (like.d_o && starts) out.d_o = gathered_rows(pieces, [](const problem& p) -> const tensor& { return *p.d_o; }, 1, "do");
  out.cu_seqlens.clear();
  std::vector<std::int64_t> offsets{0};
  for (const piece& x : pieces) {
    if (x.begins) offsets.push_back(offsets.back());
    offsets.back() += static_cast<std::int64_t>(x.count);
  }
  if (offsets.size() > 2) out.cu_seqlens = offsets;
  const auto states = [&](const tensor& t, const std::string& name) {
    std::vector<std::size_t> shape = t.shape();
    shape[0] = 0;
    std::vector<std::byte> bytes;
    for (const piece& x : pieces) {
      if (!x.begins) continue;
      const std::size_t heads = t.dim(1);
      const auto one = rows{&t, x.sequence * heads, heads}.bytes();
      bytes.insert(bytes.end(), one.begin(), one.end());
      ++shape[0];
    }
    return tensor(t.element_format(), shape, bytes, name);
  };
  out.initial_state.reset();
  if (starts && like.initial_state) out.initial_state = states(*like.initial_state, "initial_state");
  if (starts && like.d_final_state) out.d_final_state = states(*like.d_final_state, "dfinal_state");
  return out;
}

std::string numbered(const std::string& name, std::size_t i) { return name + "-" + std::to_string(i); }

std::vector<std::size_t> lengths_of(const problem& p) {
  std::vector<std::size_t> out;
  for (const sequence_range& s : p.sequences()) out.push_back(s.tokens);
  return out;
}

/// split, snapshot and cp: each sequence in `calls` parts, each from the state that the one before it left.
void add_cuts(const problem& p, std::size_t calls, const std::string& name, std::vector<set_call>& out) {
  const std::vector<std::size_t> lengths = lengths_of(p);
  const std::size_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  if (calls < 2 || calls > longest)
    throw domain_error("gen: --calls " + std::to_string(calls) + " cannot split sequences of at most " + std::to_string(longest) +
                       " tokens; give at least 2 calls, and no more than there are tokens");
  for (std::size_t i = 0; i < calls; ++i) {
    std::vector<piece> pieces;
    std::vector<std::size_t> before;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const std::size_t first = lengths[s] * i / calls, last = lengths[s] * (i + 1) / calls;
      pieces.push_back({&p, s, first, last - first});
      before.push_back(first - (i > 0 ? lengths[s] * (i - 1) / calls : 0));
    }
    set_call call{numbered(name, i + 1), {}, gathered(pieces, i == 0)};
    if (i > 0) {
      call.after = numbered(name, i);
      call.kept = before;
    }
    out.push_back(std::move(call));
  }
}

/// rollback: a call that ends with tokens of another problem, then the rest from the state before those.
void add_draft(const problem& p, const problem& other, std::size_t drafted, std::vector<set_call>& out) {
  std::vector<piece> draft, rest;
  std::vector<std::size_t> kept;
  const std::vector<std::size_t> lengths = lengths_of(p);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    // Not the same place in each sequence, and no multiple of a chunk.
    const std::size_t accepted = std::min(lengths[s], lengths[s] * 7 / 16 + s);
    const std::size_t wrong = std::min(drafted, lengths[s] - accepted);
    draft.push_back({&p, s, 0, accepted});
    draft.push_back({&other, s, accepted, wrong, false});
    rest.push_back({&p, s, accepted, lengths[s] - accepted});
    kept.push_back(accepted);
  }
  if (std::all_of(lengths.begin(), lengths.end(), [](std::size_t tokens) { return tokens < 4; }) || drafted == 0)
    throw domain_error(
        "gen --for rollback needs a sequence of at least 4 tokens (--T) and at least one drafted token (--drafted)");
  out.push_back({"draft", {}, gathered(draft, true)});
  set_call next{"rest", {}, gathered(rest, false)};
  next.after = "draft";
  next.kept = kept;
  out.push_back(std::move(next));
}

void add_batches(const problem& p, std::vector<set_call>& out) {
  const std::vector<std::size_t> lengths = lengths_of(p);
  if (lengths.size() < 2) throw domain_error("gen --for batch needs at least two sequences; give --B 2 or more, or --cu-seqlens");
  std::vector<piece> turned;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    out.push_back({numbered("alone", s + 1), {}, gathered({{&p, s, 0, lengths[s]}}, true)});
    const std::size_t from = (s + 1) % lengths.size();
    turned.push_back({&p, from, 0, lengths[from]});
  }
  out.push_back({"turned", {}, gathered(turned, true)});
  turned.pop_back();
  if (turned.size() > 1) out.push_back({"fewer", {}, gathered(turned, true)});
}

json call_json(const set_call& c) {
  const bool own = c.problem_of.empty();
  json j{{"name", c.name}, {"problem", (own ? c.name : c.problem_of) + problem_end}, {"result", c.name + result_end}};
  j["tokens"] = c.after.empty() ? json(nullptr) : json(c.name + ".tokens.safetensors");
  j["state"] = nullptr;
  if (!c.after.empty()) j["state"] = {{"after", c.after}, {"kept", c.kept}};
  j["path"] = c.path ? json(name_of(*c.path)) : json(nullptr);
  j["flush_every"] = c.flush_every ? json(*c.flush_every) : json(nullptr);
  j["chunk_size"] = c.chunk_size ? json(*c.chunk_size) : json(nullptr);
  return j;
}

invariant_kind kind_in(const std::string& name, const std::filesystem::path& manifest) {
  try {
    return invariant_named(name);
  } catch (const format_error& e) {
    throw format_error(manifest.string() + ": " + e.what());
  }
}

}  // namespace

bool counts_calls(invariant_kind kind) {
  using enum invariant_kind;
  return kind == repeat || kind == prefix || kind == split || kind == snapshot || kind == cp;
}

std::vector<set_call> problems_for(invariant_kind kind, const problem& p, const problem& other, const set_options& options) {
  std::vector<set_call> out{{"whole", {}, p}};
  const std::vector<std::size_t> lengths = lengths_of(p);
  const auto again = [&](const std::string& name) -> set_call& {
    out.push_back({name, "whole", p});
    return out.back();
  };
  if (counts_calls(kind) && options.calls == 0)
    throw domain_error(
        "gen: --calls 0 leaves nothing to compare with the whole; give at least 1 (split, snapshot and cp: at least 2)");
  switch (kind) {
    case invariant_kind::repeat:
      for (std::size_t i = 1; i <= options.calls; ++i) again(numbered("again", i));
      return out;
    case invariant_kind::path:
      out[0].path = path_kind::chunk;
      again("recurrent").path = path_kind::recurrent;
      return out;
    case invariant_kind::chunk_size:
      out[0].chunk_size = 64;
      for (const std::size_t chunk : std::initializer_list<std::size_t>{16, 32})
        again(numbered("chunk", chunk)).chunk_size = chunk;
      return out;
    case invariant_kind::flush:
      out[0].path = path_kind::recurrent;
      for (const std::size_t every : std::initializer_list<std::size_t>{1, 4, 16}) {
        set_call& call = again(numbered("flush", every));
        call.flush_every = every;
        call.path = path_kind::recurrent;
      }
      return out;
    case invariant_kind::split:
    case invariant_kind::snapshot:
      add_cuts(p, options.calls, "call", out);
      return out;
    case invariant_kind::cp:
      add_cuts(p, options.calls, "rank", out);
      return out;
    case invariant_kind::rollback:
      add_draft(p, other, options.drafted, out);
      return out;
    case invariant_kind::batch:
      add_batches(p, out);
      return out;
    case invariant_kind::varlen:
      for (std::size_t s = 0; s < lengths.size(); ++s)
        out.push_back({numbered("alone", s + 1), {}, gathered({{&p, s, 0, lengths[s]}}, true)});
      return out;
    case invariant_kind::prefix:
      for (std::size_t i = 1; i <= options.calls; ++i) {
        std::vector<piece> pieces;
        for (std::size_t s = 0; s < lengths.size(); ++s) pieces.push_back({&p, s, 0, lengths[s] * i / (options.calls + 1)});
        out.push_back({numbered("first", i), {}, gathered(pieces, true)});
      }
      return out;
    case invariant_kind::gradients:
      if (!p.d_o && !p.d_final_state)
        throw domain_error("gen --for gradients needs a problem with cotangents; give --cotangents");
      return out;
    case invariant_kind::pad:
      break;
  }
  throw format_error("gen --for " + std::string(name_of(kind)) +
                     ": gen cannot write the calls of this invariant; record them yourself (gen writes those of prefix, split, "
                     "varlen, chunk-size, path, repeat, batch, snapshot, rollback, flush, cp, gradients)");
}

std::string set_manifest(invariant_kind kind, const std::vector<set_call>& calls, const std::string& options) {
  json j{{"invariant", name_of(kind)}, {"options", options}, {"calls", json::array()}};
  for (const set_call& c : calls) j["calls"].push_back(call_json(c));
  return j.dump(2, ' ', false, json::error_handler_t::replace);
}

recorded_set read_set(const std::filesystem::path& folder, notes_list& notes) {
  const std::filesystem::path file = folder / "manifest.json";
  if (!std::filesystem::exists(file))
    throw format_error(folder.string() +
                       ": there is no manifest.json; give a folder that gen --for made, or the files: PROBLEM RESULT of the "
                       "whole, and its parts with --part or --parts-dir");
  const std::string text = read_file(file, manifest_limit);
  detail::require_shallow_json(text, file.string());
  const json j = json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains("invariant") || !j["invariant"].is_string() || !j.contains("calls") ||
      !j["calls"].is_array() || j["calls"].empty())
    throw format_error(
        file.string() +
        ": it does not name an invariant and its calls; make the folder again with deltaproof gen --for KIND --dir DIR");
  recorded_set out{kind_in(j["invariant"].get<std::string>(), file), {}, {}};
  for (std::size_t i = 0; i < j["calls"].size(); ++i) {
    const json& call = j["calls"][i];
    const auto path = [&](const char* key) {
      if (!call.is_object() || !call.contains(key) || !call[key].is_string())
        throw format_error(file.string() + ": call " + std::to_string(i + 1) + " lacks the key " + in_quotes(key) +
                           ", the name of a file; make the folder again with deltaproof gen --for KIND --dir DIR");
      const std::filesystem::path name = call[key].get<std::string>();
      if (name != name.filename())
        throw format_error(file.string() + ": " + in_quotes(name.string()) + " is a path; give the name of a file in the folder");
      if (!std::filesystem::exists(folder / name))
        throw format_error((folder / name).string() +
                           ": there is no such file; record every call of the set first "
                           "(deltaproof.record_set in Python)");
      return folder / name;
    };
    recorded_run run = read_run(path("problem"), path("result"), notes);
    if (i == 0) {
      out.whole = std::move(run);
    } else {
      out.parts.push_back(std::move(run));
    }
  }
  return out;
}

}  // namespace deltaproof
