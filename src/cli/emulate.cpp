// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <nlohmann/json.hpp>

#include "cli/numbers.hpp"
#include "cli/program.hpp"
#include "cli/progress.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/emulate/emulate_gradients.hpp"
#include "deltaproof/emulate/faults.hpp"
#include "deltaproof/sweep/campaign.hpp"

namespace deltaproof::cli {
namespace {

struct emulate_arguments {
  std::string problem;
  std::string plan;
  std::string fault;
  std::string output;
  std::string path;
  std::size_t chunk = 0;
  std::size_t variant = 0;
  double noise = 0;
  bool no_stages = false;
  bool gradients = false;
};

/// What was asked for, else the first the plan names.
path_kind path_for(const emulate_arguments& args, const plan& declared) {
  if (args.path.empty()) return declared.path.front();
  if (args.path != "chunk" && args.path != "recurrent")
    throw format_error("emulate: --path " + in_quotes(args.path) + ": use chunk or recurrent");
  return path_named(args.path);
}

/// The fault that was asked for, if any. Throws: format_error if it cannot happen here.
const fault* fault_for(const emulate_arguments& args, const problem& p, path_kind path) {
  if (args.fault.empty()) return nullptr;
  const fault& found = fault_named(args.fault);
  if (found.pass == pass_kind::backward && !args.gradients)
    throw format_error("emulate: the fault " + args.fault + " is a fault of the backward pass; add --gradients");
  if (const std::string why = why_impossible(found, p, path); !why.empty()) {
    throw format_error("emulate: the fault " + args.fault + " cannot happen here: " + why + "; see deltaproof explain " +
                       args.fault);
  }
  return &found;
}

int run(const emulate_arguments& args, const common_options& common) {
  notes_list notes;
  const safetensors_file source = read_safetensors(args.problem);
  const problem p = parse_problem(source, notes);
  const plan declared = plan_named(args.plan);
  const path_kind path = path_for(args, declared);
  if (args.chunk > 0 && path != path_kind::chunk)
    throw format_error("emulate: --chunk has no effect on the path " + std::string(name_of(path)) + "; leave it out");
  const std::size_t chunk = args.chunk > 0 && path == path_kind::chunk ? args.chunk : usual_chunk(declared, path);
  const std::vector<plan_variant> allowed =
      args.gradients ? gradient_variants(declared, p, path, chunk) : variants(declared, p, path, chunk);
  if (args.gradients && allowed.empty()) {
    throw format_error("emulate: plan " + declared.name +
                       " has no [backward] section, so it does not say how gradients are computed; take a plan that has one "
                       "(deltaproof explain PLAN "
                       "shows it), or leave --gradients out");
  }
  if (args.variant >= allowed.size()) {
    throw format_error(
        "emulate: --variant " + std::to_string(args.variant) + ": on this problem plan " + declared.name + " has " +
        (allowed.size() == 1 ? "1 variant, number 0" : std::to_string(allowed.size()) + " variants, numbered from 0"));
  }
  emulation_options options;
  options.stages = !args.no_stages;
  options.noise_ulps = args.noise;
  options.seed = common.seed;
  options.planted = fault_for(args, p, path);
  options.stop = &stop_requested();
  result out = [&] {
    progress_line line("heads");
    options.progress = [&line](double share) { line.update(share); };
    return args.gradients ? emulate_gradients(p, allowed[args.variant], options, common.threads)
                          : emulate(p, allowed[args.variant], options, common.threads);
  }();
  if (stop_requested()) {
    say(common, "emulate: " + why_stopped(common) + "; nothing was written\n");
    return 3;
  }
  if (!declared.kernels.empty()) out.kernel = declared.kernels.front();
  out.problem_sha256 = sha256_hex(source.bytes());
  out.producer = "deltaproof " DELTAPROOF_VERSION ", " + allowed[args.variant].name +
                 (args.fault.empty() ? "" : ", planted fault " + args.fault);
  write_result(args.output, out);
  std::string text = args.output + ": the emulated outputs of " + allowed[args.variant].name + " for " + args.problem +
                     (args.fault.empty() ? "" : ", with the planted fault " + args.fault) + "\n";
  for (const std::string& note : notes) text += "note: " + note + "\n";
  const nlohmann::ordered_json j{
      {"schema", "deltaproof.emulation/1"},
      {"output", args.output},
      {"plan", declared.name},
      {"variant", allowed[args.variant].name},
      {"path", name_of(path)},
      {"chunk_size", chunk},
      {"fault", args.fault.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(args.fault)},
      {"notes", notes}};
  publish(common, {"emulate", text, j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"});
  return 0;
}

}  // namespace

verb add_emulate(CLI::App* command, common_options& common) {
  const auto args = std::make_shared<emulate_arguments>();
  run_files& files = common.files;
  files.reads(
      command->add_option("PROBLEM", args->problem, "The problem file (deltaproof.problem/1)")->required()->type_name("FILE"));
  files.reads_plan(
      command->add_option("--plan", args->plan, "Plan to run: a preset (deltaproof list plans) or a file ending in .toml")
          ->required()
          ->type_name("PLAN"));
  command
      ->add_option("--fault", args->fault,
                   "Fault to plant (deltaproof list faults); a fault of the backward pass needs --gradients")
      ->type_name("FAULT")
      ->check(not_empty());
  files.writes(command->add_option("-o,--output", args->output, "The result file to write (deltaproof.result/1)")
                   ->required()
                   ->type_name("FILE"));
  command->add_option("--path", args->path, "chunk or recurrent; default: the first path of the plan")
      ->type_name("PATH")
      ->check(not_empty());
  command
      ->add_option("--chunk", args->chunk,
                   "Chunk length in rows of k; default: 64 if the plan covers it, else the first length that the plan lists")
      ->type_name("C")
      ->check(integer_within(1, 1 << 20));
  command
      ->add_option("--variant", args->variant,
                   "Which variant of the plan to run, counted from 0: a variant is one of the arithmetics that the plan allows")
      ->type_name("N")
      ->check(whole_number());
  command
      ->add_option(
          "--noise", args->noise,
          "0 (default): exactly the plan's arithmetic. Above 0: the arithmetic of another build of the same kernel, with each "
          "sum started at a random term (drawn with --seed). Above 1: in addition, each finished sum is off by up to this many "
          "ulps of fp32 (of fp64 if the plan has sums in fp64)")
      ->type_name("ULPS")
      ->check(number_within(0, 0x1p20));
  command->add_flag("--gradients", args->gradients,
                    "Also write the gradients (dq, dk, dv, dbeta, dg, dinitial_state) for the problem's do and dfinal_state");
  command->add_flag("--no-stages", args->no_stages, "Write no stages");
  return [args, &common] { return run(*args, common); };
}

}  // namespace deltaproof::cli
