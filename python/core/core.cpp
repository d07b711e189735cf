// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// The module deltaproof._core: what of the library Python calls. Problems and results come as exchange files, read or made in
// memory (`file`); everything else is numbers, words and JSON. Long work runs in a thread of its own with the interpreter
// unlocked: Ctrl-C ends it, and its arithmetic is IEEE 754 whatever the caller's thread has been told (flush to zero).

#include <mpfr.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cfenv>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "deltaproof/check/check.hpp"
#include "deltaproof/check/invariant.hpp"
#include "deltaproof/check/request.hpp"
#include "deltaproof/check/witness.hpp"
#include "deltaproof/emulate/emulate.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/files/exchange.hpp"
#include "deltaproof/files/safetensors.hpp"
#include "deltaproof/inputs/regimes.hpp"
#include "deltaproof/number/canary.hpp"
#include "deltaproof/oracle/reference.hpp"
#include "deltaproof/plan/plan.hpp"
#include "deltaproof/support/write_file.hpp"
#include "dlpack.hpp"

namespace py = pybind11;

namespace deltaproof::python {
namespace {

/// `work(stop)` in a thread of its own; `stop` is set by Ctrl-C and after `max_seconds` (0: no limit).
template <class Work>
auto run_released(double max_seconds, const Work& work) {
  if (!(max_seconds >= 0 && max_seconds <= 1e8))
    throw format_error("max_seconds=" + std::to_string(max_seconds) + "; use a number of seconds up to 1e8, or 0: no limit");
  using answer = decltype(work(std::declval<const std::atomic<bool>&>()));
  std::atomic<bool> stop{false};
  std::optional<answer> out;
  std::exception_ptr failure;
  std::mutex lock;
  std::condition_variable woken;
  bool done = false;
  std::thread worker([&] {
    // Threads inherit the rounding mode and flush to zero of the one that starts them.
    std::fesetenv(FE_DFL_ENV);
    try {
      require_sound_environment();
      out.emplace(work(stop));
    } catch (...) {
      failure = std::current_exception();
    }
    mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
    const std::lock_guard guard(lock);
    done = true;
    woken.notify_one();
  });
  std::optional<py::error_already_set> interrupted;
  {
    const py::gil_scoped_release released;
    const auto start = std::chrono::steady_clock::now();
    for (std::unique_lock guard(lock); !woken.wait_for(guard, std::chrono::milliseconds(100), [&] { return done; });) {
      if (max_seconds > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > max_seconds)
        stop = true;
      guard.unlock();
      {
        const py::gil_scoped_acquire locked;
        if (!interrupted && PyErr_CheckSignals() != 0) {
          interrupted.emplace();
          stop = true;
        }
      }
      guard.lock();
    }
    worker.join();
  }
  if (interrupted) throw py::error_already_set(*interrupted);
  if (failure) std::rethrow_exception(failure);
  return std::move(*out);
}

/// A tensor list and its metadata as they stand in a file, with a path or without.
struct file {
  safetensors_file image;
  std::string path;  ///< empty: made in memory
};

file opened(const std::string& path) { return {read_safetensors(path), path}; }

/// The file that these would be. `where` names it in messages.
file made(const safetensors_metadata& metadata, const std::vector<tensor>& tensors, const std::string& where) {
  auto text = std::make_shared<const std::string>(safetensors_bytes(metadata, tensors));
  const shared_bytes bytes(text, reinterpret_cast<const std::byte*>(text->data()));
  return {safetensors_file(bytes, text->size(), where), {}};
}

std::string hash_of(const file& f) { return sha256_hex(f.image.bytes()); }

std::vector<tensor> tensors_of(const file& f) {
  std::vector<tensor> out;
  for (const safetensors_entry& entry : f.image.entries()) out.push_back(f.image.load(entry));
  return out;
}

void write_to(const file& f, const std::string& path) {
  const std::span<const std::byte> bytes = f.image.bytes();
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

struct judgement {
  std::string word, reason, text, json, witness_says;
  int exit_code = 0;
};

/// The program's command for the same verdict; of tensors in memory, once `record` has written them.
std::string command_for(const file& problem_file, const file& result_file, const check_request& asked) {
  const auto path = [](const file& f, const char* otherwise) { return shell_quoted(f.path.empty() ? otherwise : f.path); };
  const bool written = !problem_file.path.empty() && !result_file.path.empty();
  return (written ? "" : "deltaproof.record(\"case\", problem, result), then ") + std::string("deltaproof check ") +
         path(problem_file, "case.problem.safetensors") + " " + path(result_file, "case.result.safetensors") +
         options_text(asked);
}

judgement judged(const file& problem_file, const file& result_file, const check_request& asked, const std::atomic<bool>& stop) {
  check_identity identity;
  const problem p = parse_problem(problem_file.image, identity.notes);
  identity.problem_sha256 = hash_of(problem_file);
  const result r = parse_result(result_file.image, p, identity.problem_sha256, identity.notes);
  identity.result_sha256 = hash_of(result_file);
  identity.problem_path = problem_file.path;
  identity.result_path = result_file.path;
  identity.reproduce = command_for(problem_file, result_file, asked);
  check_options how;
  how.stop = &stop;
  const answered_check answered = answer(p, r, asked, std::move(identity), how);
  const check_report& report = answered.report;
  return {std::string(name_of(report.judged)), report.reason,         to_text(report, answered.identity),
          to_json(report, answered.identity),  answered.witness_says, exit_code(report.judged)};
}

/// As the program's `invariant gradients`.
judgement identities(const file& problem_file, const file& result_file, const judging& how, unsigned threads,
                     const std::atomic<bool>& stop) {
  check_identity identity;
  recorded_run whole;
  whole.given = parse_problem(problem_file.image, identity.notes);
  whole.problem_sha256 = hash_of(problem_file);
  whole.gave = parse_result(result_file.image, whole.given, whole.problem_sha256, identity.notes);
  whole.result_sha256 = hash_of(result_file);
  whole.problem_path = problem_file.path.empty() ? "problem" : problem_file.path;
  whole.result_path = result_file.path.empty() ? "result" : result_file.path;
  identity.version = DELTAPROOF_VERSION;
  const bool written = !problem_file.path.empty() && !result_file.path.empty();
  identity.reproduce = (written ? "" : "deltaproof.record(\"case\", problem, result), then ") +
                       std::string("deltaproof invariant gradients ") +
                       shell_quoted(written ? problem_file.path : "case.problem.safetensors") + " " +
                       shell_quoted(written ? result_file.path : "case.result.safetensors") + options_text(how);
  invariant_options options;
  options.check.judge = how;
  options.check.threads = threads;
  options.check.stop = &stop;
  const invariant_report report = check_invariant(invariant_kind::gradients, whole, {}, options);
  return {std::string(name_of(report.judged)),
          report.reason,
          to_text(report, whole, {}, identity),
          to_json(report, whole, {}, identity),
          "",
          exit_code(report.judged)};
}

/// What `oracle` answers: tensors o and final_state, NaN where nothing decided, and what is known of each.
struct true_outputs {
  std::vector<tensor> tensors;
  std::map<std::string, double> radius;  ///< the largest before rounding
  std::map<std::string, std::size_t> undecided;
  std::map<std::string, std::size_t> tiers;  ///< the highest that a head needed -> heads
  std::string problem_sha256;
  bool stopped = false;
};

true_outputs truth(const file& problem_file, const std::string& round, int max_bits, unsigned threads,
                   const std::atomic<bool>& stop) {
  const format to = format_named(round);
  if (to.storage_bits < 16 || to == tf32)
    throw format_error("oracle: round is " + in_quotes(round) + "; use bf16, fp16, fp32 or fp64");
  notes_list notes;
  question ask;
  ask.round_output = ask.round_state = to;
  ask.max_bits = max_bits;
  ask.threads = threads;
  ask.stop = &stop;
  const reference ref = solve(parse_problem(problem_file.image, notes), ask);
  true_outputs out{{}, {}, {}, ref.tiers, hash_of(problem_file), ref.stopped};
  if (ref.stopped) return out;
  for (const auto& [name, part] : {std::pair{"o", &ref.o}, std::pair{"final_state", &ref.final_state}}) {
    std::vector<double> values(part->value.size(), std::nan(""));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::optional<double> rounded = decided_rounding(*part, i, to);
      if (rounded) values[i] = *rounded;
      if (!rounded) ++out.undecided[name];
      out.radius[name] = std::max(out.radius[name], part->radius[i]);
    }
    out.tensors.push_back(tensor::from_doubles(to, part->shape, values, name));
  }
  return out;
}

/// What `emulate` gives: the tensors of a result file, and its words.
struct emulated {
  std::vector<tensor> tensors;
  std::string kernel, path, producer, problem_sha256, variant;
  std::optional<std::size_t> chunk_size;
};

struct emulation_request {
  std::string plan, fault, path;
  std::size_t chunk = 0, variant = 0;
  double noise_ulps = 0;
  std::uint64_t seed = 1;
  bool stages = true;
  bool gradients = false;
  unsigned threads = 0;
};

/// As the program's `emulate` does it.
emulated run_plan(const file& problem_file, const emulation_request& asked) {
  notes_list notes;
  const problem p = parse_problem(problem_file.image, notes);
  const plan declared = plan_named(asked.plan);
  const path_kind path = asked.path.empty() ? declared.path.front() : path_named(asked.path);
  const auto& known = declared.chunk;
  const std::size_t usual =
      known.empty() || std::find(known.begin(), known.end(), std::size_t{64}) != known.end() ? 64 : known.front();
  const std::size_t chunk = path != path_kind::chunk ? 0 : asked.chunk > 0 ? asked.chunk : usual;
  const std::vector<plan_variant> allowed =
      asked.gradients ? gradient_variants(declared, p, path, chunk) : variants(declared, p, path, chunk);
  if (asked.gradients && allowed.empty())
    throw format_error("emulate: plan " + declared.name +
                       " has no [backward] section, so it does not say how gradients are computed; leave gradients out");
  if (asked.variant >= allowed.size()) {
    throw format_error(
        "emulate: variant " + std::to_string(asked.variant) + ": on this problem plan " + declared.name + " has " +
        (allowed.size() == 1 ? "1 variant, number 0" : std::to_string(allowed.size()) + " variants, numbered from 0"));
  }
  emulation_options options;
  options.stages = asked.stages;
  options.noise_ulps = asked.noise_ulps;
  options.seed = asked.seed;
  if (!asked.fault.empty()) {
    options.planted = &fault_named(asked.fault);
    if (options.planted->pass == pass_kind::backward && !asked.gradients)
      throw format_error("emulate: the fault " + asked.fault + " is a fault of the backward pass; add gradients=True");
    if (const std::string why = why_impossible(*options.planted, p, path); !why.empty()) {
      throw format_error("emulate: the fault " + asked.fault + " cannot happen here: " + why + "; see deltaproof.faults()");
    }
  }
  const result r = asked.gradients ? emulate_gradients(p, allowed[asked.variant], options, asked.threads)
                                   : emulate(p, allowed[asked.variant], options, asked.threads);
  emulated out;
  out.tensors.push_back(r.o.named("o"));
  if (r.final_state) out.tensors.push_back(r.final_state->named("final_state"));
  for (const auto* list : {&r.stages, &r.backward_stages, &r.gradients}) {
    for (const auto& [name, t] : *list) out.tensors.push_back(t.named(name));
  }
  out.kernel = declared.kernels.empty() ? "" : declared.kernels.front();
  out.path = name_of(path);
  out.chunk_size = r.chunk_size;
  out.problem_sha256 = hash_of(problem_file);
  out.variant = allowed[asked.variant].name;
  out.producer =
      "deltaproof " DELTAPROOF_VERSION ", " + out.variant + (asked.fault.empty() ? "" : ", planted fault " + asked.fault);
  return out;
}

generation wanted(const std::string& regime, std::uint64_t seed, const py::dict& given) {
  generation g;
  g.regime = regime;
  g.seed = seed;
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    const auto refuse = [&name, &value = value](const char* use) {
      return format_error("cases: " + name + " is " + py::repr(value).cast<std::string>() + "; use " + use);
    };
    const auto size = [&refuse, &value = value] {
      try {
        return value.cast<std::size_t>();
      } catch (const py::cast_error&) {
        throw refuse("a whole number from 0");
      }
    };
    const auto word = [&value = value] { return py::str(value).cast<std::string>(); };
    const auto offsets = [&refuse, &value = value] {
      try {
        return value.cast<std::vector<std::int64_t>>();
      } catch (const py::cast_error&) {
        throw refuse("a list of whole numbers, such as [0, 5, 16]");
      }
    };
    const auto yes = [&refuse, &value = value] {
      try {
        return value.cast<bool>();
      } catch (const py::cast_error&) {
        throw refuse("True or False");
      }
    };
    const std::map<std::string_view, std::function<void()>> meaning{
        {"op", [&] { g.op = op_named(word()); }},
        {"rule", [&] { g.rule = rule_named(word()); }},
        {"dtype", [&] { g.dtype = format_named(word()); }},
        {"beta", [&] { g.beta = word(); }},
        {"gate", [&] { g.gate = word(); }},
        {"initial_state", [&] { g.initial_state = word(); }},
        {"law", [&] { g.law = word(); }},
        {"cu_seqlens", [&] { g.cu_seqlens = offsets(); }},
        {"B", [&] { g.batch = size(); }},
        {"T", [&] { g.tokens = size(); }},
        {"K", [&] { g.key_dim = size(); }},
        {"V", [&] { g.value_dim = size(); }},
        {"H", [&] { g.key_heads = size(); }},
        {"HV", [&] { g.value_heads = size(); }},
        {"num_householder", [&] { g.num_householder = size(); }},
        {"cotangents", [&] { g.cotangents = yes(); }},
    };
    const auto found = meaning.find(name);
    if (found == meaning.end()) {
      std::string known;
      for (const auto& [one, set] : meaning) known += (known.empty() ? "" : ", ") + std::string(one);
      throw format_error("cases: " + in_quotes(name) + " is not an argument of cases; use one of " + known);
    }
    found->second();
  }
  return g;
}

file generated(const generation& g) {
  auto text = std::make_shared<const std::string>(problem_bytes(generate(g)));
  const shared_bytes bytes(text, reinterpret_cast<const std::byte*>(text->data()));
  return {safetensors_file(bytes, text->size(), "problem " + g.regime), {}};
}

template <class T>
std::vector<std::string> names(const std::vector<T>& all) {
  std::vector<std::string> out;
  for (const T& one : all) out.emplace_back(name_of(one));
  return out;
}

py::list plan_list() {
  py::list out;
  for (const plan& p : plans()) {
    out.append(py::dict(py::arg("name") = p.name, py::arg("what") = p.what, py::arg("source") = p.source,
                        py::arg("kernels") = p.kernels, py::arg("ops") = names(p.ops), py::arg("path") = names(p.path),
                        py::arg("dtypes") = names(p.dtypes), py::arg("chunk") = p.chunk,
                        py::arg("toml") = std::string(plan_text(p.name))));
  }
  return out;
}

py::list regime_list() {
  py::list out;
  for (const regime_info& r : regimes())
    out.append(py::dict(py::arg("name") = r.name, py::arg("what") = r.what, py::arg("why") = r.why));
  return out;
}

py::list fault_list() {
  py::list out;
  for (const fault& f : fault_catalogue()) {
    py::list needs;
    for (const fault_need& n : f.needs) needs.append(n.what);
    out.append(py::dict(py::arg("name") = f.name, py::arg("stage") = f.stage, py::arg("what") = f.what,
                        py::arg("chunk") = f.chunk, py::arg("recurrent") = f.recurrent,
                        py::arg("backward") = f.pass == pass_kind::backward, py::arg("tensors") = py::tuple(py::cast(f.tensors)),
                        py::arg("acts") = py::tuple(py::cast(f.acts)), py::arg("needs") = py::tuple(needs)));
  }
  return out;
}

py::tuple shape_tuple(const tensor& t) {
  py::tuple out(t.rank());
  for (std::size_t axis = 0; axis < t.rank(); ++axis) out[axis] = t.dim(axis);
  return out;
}

std::string decimal(double x) {
  std::array<char, 32> text{};
  const auto [end, failed] = std::to_chars(text.data(), text.data() + text.size(), x);
  return failed == std::errc() ? std::string(text.data(), end) : std::string();
}

}  // namespace
}  // namespace deltaproof::python

PYBIND11_MODULE(_core, m) {
  using namespace deltaproof;
  using namespace deltaproof::python;
  m.doc() = "The compiled half of deltaproof; use the package deltaproof.";
  m.attr("version") = DELTAPROOF_VERSION;

  // Each throws with the library's words; ValueError is what Python calls a wrong argument.
  const auto base = py::register_exception<error>(m, "error", PyExc_ValueError);
  py::register_exception<shape_error>(m, "shape_error", base);
  py::register_exception<domain_error>(m, "domain_error", base);
  py::register_exception<format_error>(m, "format_error", base);
  py::register_exception<environment_error>(m, "environment_error", base);

  py::class_<tensor>(m, "tensor", "A tensor of an exchange file. Read it with torch.from_dlpack or numpy.from_dlpack.")
      .def_property_readonly("name", &tensor::name)
      .def_property_readonly("dtype", &tensor::dtype, "as safetensors names it: BF16, F16, F32, F64, I64")
      .def_property_readonly("shape", &shape_tuple)
      .def_property_readonly("nbytes", [](const tensor& t) { return t.bytes().size(); })
      .def_property_readonly(
          "address", [](const tensor& t) { return reinterpret_cast<std::uintptr_t>(t.bytes().data()); },
          "of the first byte; shared with the caller's tensor where that was contiguous")
      .def(
          "__dlpack__", [](const tensor& t, const py::kwargs&) { return to_dlpack(t); }, "A DLPack capsule of a copy")
      .def("__dlpack_device__", [](const tensor&) { return dlpack_device(); })
      .def("named", &tensor::named, py::arg("name"), "The same elements under another name.")
      .def("tobytes",
           [](const tensor& t) { return py::bytes(reinterpret_cast<const char*>(t.bytes().data()), t.bytes().size()); })
      .def(
          "__eq__", [](const tensor& a, const tensor& b) { return same_bits(a, b); }, py::is_operator())
      .def("__repr__", [](const tensor& t) {
        return "deltaproof.tensor(" + t.name() + ", " + t.dtype() + ", " + shape_text(t.shape()) + ")";
      });
  m.def("from_dlpack", &from_dlpack, py::arg("capsule"), py::arg("name"), py::arg("dtype") = "");
  m.def("from_buffer", &from_buffer, py::arg("buffer"), py::arg("name"), py::arg("dtype") = "");
  m.def(
      "from_integers",
      [](const std::vector<std::int64_t>& values, const std::string& name) {
        return tensor::from_integers({values.size()}, values, name);
      },
      py::arg("values"), py::arg("name"));

  py::class_<file>(m, "file", "A safetensors file, read or made in memory.")
      .def_property_readonly("path", [](const file& f) { return f.path; })
      .def_property_readonly("sha256", &hash_of)
      .def_property_readonly("metadata", [](const file& f) { return f.image.metadata(); })
      .def_property_readonly("tensors", &tensors_of)
      .def_property_readonly("nbytes", [](const file& f) { return f.image.bytes().size(); })
      .def("write", &write_to, py::arg("path"), py::call_guard<py::gil_scoped_release>());
  m.def("opened", &opened, py::arg("path"), py::call_guard<py::gil_scoped_release>());
  m.def("made", &made, py::arg("metadata"), py::arg("tensors"), py::arg("where"), py::call_guard<py::gil_scoped_release>());
  m.def(
      "validate",
      [](const file& problem_file, const file* result_file) {
        notes_list notes;
        const problem p = parse_problem(problem_file.image, notes);
        if (result_file != nullptr) static_cast<void>(parse_result(result_file->image, p, hash_of(problem_file), notes));
        return notes;
      },
      py::arg("problem"), py::arg("result") = nullptr, py::call_guard<py::gil_scoped_release>(),
      "Throws what a reader of these files would; returns its notes.");

  py::class_<judgement>(m, "judgement")
      .def_readonly("word", &judgement::word)
      .def_readonly("reason", &judgement::reason)
      .def_readonly("exit_code", &judgement::exit_code)
      .def_readonly("text", &judgement::text)
      .def_readonly("json", &judgement::json)
      .def_readonly("witness_says", &judgement::witness_says);
  m.def(
      "check",
      [](const file& problem_file, const file& result_file, const std::string& plan, bool no_plan,
         const std::vector<std::string>& max_error, const std::string& reason, double false_alarm, std::optional<double> accuracy,
         bool power, int max_bits, bool strict_padding, std::uint64_t seed, unsigned threads, double max_seconds,
         const std::string& witness) {
        check_request asked;
        asked.plan = plan;
        asked.no_plan = no_plan;
        for (const std::string& limit : max_error) asked.judge.bounds.push_back(parse_tensor_bound(limit, because(reason)));
        asked.judge.false_alarm = false_alarm;
        asked.judge.accuracy = accuracy;
        asked.judge.power = power;
        asked.judge.max_bits = max_bits;
        asked.judge.strict_padding = strict_padding;
        asked.judge.seed = seed;
        asked.threads = threads;
        asked.witness = witness;
        asked.replace_witness = true;
        return run_released(max_seconds,
                            [&](const std::atomic<bool>& stop) { return judged(problem_file, result_file, asked, stop); });
      },
      py::arg("problem"), py::arg("result"), py::kw_only(), py::arg("plan"), py::arg("no_plan"), py::arg("max_error"),
      py::arg("because"), py::arg("false_alarm"), py::arg("accuracy"), py::arg("power"), py::arg("max_bits"),
      py::arg("strict_padding"), py::arg("seed"), py::arg("threads"), py::arg("max_seconds"), py::arg("witness"));

  m.def(
      "gradient_identities",
      [](const file& problem_file, const file& result_file, std::optional<double> accuracy, int max_bits, std::uint64_t seed,
         unsigned threads, double max_seconds) {
        judging how;
        how.accuracy = accuracy;
        how.max_bits = max_bits;
        how.seed = seed;
        return run_released(max_seconds, [&](const std::atomic<bool>& stop) {
          return identities(problem_file, result_file, how, threads, stop);
        });
      },
      py::arg("problem"), py::arg("result"), py::kw_only(), py::arg("accuracy"), py::arg("max_bits"), py::arg("seed"),
      py::arg("threads"), py::arg("max_seconds"));

  py::class_<true_outputs>(m, "true_outputs")
      .def_readonly("tensors", &true_outputs::tensors)
      .def_readonly("radius", &true_outputs::radius)
      .def_readonly("undecided", &true_outputs::undecided)
      .def_readonly("tiers", &true_outputs::tiers)
      .def_readonly("problem_sha256", &true_outputs::problem_sha256)
      .def_readonly("stopped", &true_outputs::stopped);
  m.def(
      "oracle",
      [](const file& problem_file, const std::string& round, int max_bits, unsigned threads, double max_seconds) {
        return run_released(max_seconds,
                            [&](const std::atomic<bool>& stop) { return truth(problem_file, round, max_bits, threads, stop); });
      },
      py::arg("problem"), py::kw_only(), py::arg("round"), py::arg("max_bits"), py::arg("threads"), py::arg("max_seconds"));

  py::class_<emulated>(m, "emulated")
      .def_readonly("tensors", &emulated::tensors)
      .def_readonly("kernel", &emulated::kernel)
      .def_readonly("path", &emulated::path)
      .def_readonly("producer", &emulated::producer)
      .def_readonly("problem_sha256", &emulated::problem_sha256)
      .def_readonly("variant", &emulated::variant)
      .def_readonly("chunk_size", &emulated::chunk_size);
  m.def(
      "emulate",
      [](const file& problem_file, std::string plan, std::string planted, std::string path, std::size_t chunk,
         std::size_t variant, double noise, std::uint64_t seed, bool stages, bool gradients, unsigned threads) {
        const emulation_request asked{std::move(plan), std::move(planted), std::move(path), chunk, variant, noise, seed,
                                      stages,          gradients,          threads};
        return run_released(0, [&](const std::atomic<bool>&) { return run_plan(problem_file, asked); });
      },
      py::arg("problem"), py::kw_only(), py::arg("plan"), py::arg("fault"), py::arg("path"), py::arg("chunk"), py::arg("variant"),
      py::arg("noise"), py::arg("seed"), py::arg("stages"), py::arg("gradients"), py::arg("threads"));

  m.def(
      "generate",
      [](const std::string& regime, std::uint64_t seed, const py::dict& given) {
        const generation g = wanted(regime, seed, given);
        return run_released(0, [&](const std::atomic<bool>&) { return generated(g); });
      },
      py::arg("regime"), py::arg("seed"), py::arg("given"));
  m.def(
      "generation_options",
      [](const std::string& regime, std::uint64_t seed, const py::dict& given) {
        return options_text(complete(wanted(regime, seed, given)));
      },
      py::arg("regime"), py::arg("seed"), py::arg("given"), "The options of `deltaproof gen` that make the same problem");
  m.def("plans", &plan_list);
  m.def("regimes", &regime_list);
  m.def("faults", &fault_list);
  m.def("decimal", &decimal, py::arg("x"), "The shortest decimal that reads back as x, as the files have it");
  py::tuple stages(stage_names.size());
  for (std::size_t i = 0; i < stage_names.size(); ++i) stages[i] = py::str(std::string(stage_names[i]));
  m.attr("stage_names") = stages;
}
