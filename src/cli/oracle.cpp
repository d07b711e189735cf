// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/numbers.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "deltaproof/files/golden.hpp"
#include "deltaproof/oracle/inspect.hpp"
#include "support/text.hpp"

namespace deltaproof::cli {
namespace {

using json = nlohmann::ordered_json;

struct oracle_arguments {
  std::string problem;
  std::string output;
  std::string round = "fp64";
  std::size_t bits = 0;
  int max_bits = 1024;
  bool gradients = false;
};

golden_request request_of(const oracle_arguments& args, const common_options& common) {
  if (args.bits != 0 && args.round != "fp64") {
    throw format_error(
        "oracle: --bits " + std::to_string(args.bits) + " with --round " + args.round +
        ": --bits stores sums of fp64 numbers and works with --round fp64 only; leave one of the two out (with --round alone, "
        "the working precision rises by itself as far as the format needs, at most to --max-bits)");
  }
  if (args.bits > static_cast<std::size_t>(args.max_bits)) {
    throw format_error("oracle: --bits " + std::to_string(args.bits) + " with --max-bits " + std::to_string(args.max_bits) +
                       ": the working precision (--max-bits) must be at least --bits; raise --max-bits, or leave it out");
  }
  golden_request asked;
  asked.round = format_named(args.round);
  asked.bits = args.bits;
  asked.max_bits = args.max_bits;
  asked.threads = common.threads;
  asked.stop = &stop_requested();
  return asked;
}

/// What is in the file, in words: "correctly rounded to bf16".
std::string words_for(const oracle_arguments& args, bool decided) {
  if (args.bits == 0) return "correctly rounded to " + args.round + (decided ? "" : " where decided");
  return "to " + std::to_string(args.bits) + " bits, as sums of fp64 numbers (" + std::to_string(parts_of(args.bits)) +
         " in each sum; each is the correctly rounded remainder of the exact value after the numbers before it" +
         (decided ? ")" : "; of those that are decided)");
}

/// Why elements stayed open: the precision that was allowed, the bits that were asked for, or where they lie.
std::string open_because(const oracle_arguments& args) {
  const std::string most = std::to_string(args.max_bits) + " bits";
  if (args.max_bits < 1024) return "with a working precision of at most " + most + "; a larger --max-bits decides more";
  if (args.bits > 0)
    return "to " + std::to_string(args.bits) + " bits: the working precision of " + most +
           " is not enough, or they lie outside the range of fp64";
  return "even with --max-bits " + std::to_string(args.max_bits) + ", its largest value: they are too close to a tie between " +
         "two numbers of " + args.round + ", or outside the range of fp64";
}

/// What to do about elements that nothing decided.
std::string open_text(const std::string& which, const oracle_arguments& args) {
  std::string text = which + " could not be rounded with certainty " + open_because(args) + "; ";
  text += args.bits == 0 ? "they are NaN in the file, whose metadata lists them\n"
                         : "in the sum of each such element, the first number that is not decided is NaN, and so are all numbers "
                           "after it; the metadata lists these elements; a smaller --bits leaves fewer of them undecided\n";
  return text;
}

/// Writes the gradients instead of o and final_state.
int run_gradients(const oracle_arguments& args, const common_options& common, golden_request asked) {
  notes_list notes;
  const safetensors_file source = map_safetensors(args.problem);
  const std::string problem_hash = source.sha256();
  const problem p = parse_problem(source, notes);
  if (const auto sums = inspect_gate_sums(p)) notes.push_back(args.problem + ": " + sums->says);
  if (!p.has_cotangents()) {
    throw format_error(
        args.problem +
        ": gradients need do or dfinal_state, and the file holds neither; record what the backward pass was given");
  }
  const golden_gradients answer = [&] {
    progress_line line("gradients");
    asked.progress = [&line](std::size_t done, std::size_t all) {
      line.update(static_cast<double>(done) / static_cast<double>(all));
    };
    return write_golden_gradients(args.output, p, asked, problem_hash, [&] {
      if (source.changed())
        throw format_error(args.problem + ": changed while it was read; no output was written: run the same command again");
    });
  }();
  if (answer.stopped) {
    say(common, "oracle: " + why_stopped(common) + "; stopped before the gradients were complete; nothing was written\n");
    return 3;
  }
  json j{{"schema", "deltaproof.oracle/1"},
         {"output", args.output},
         {"round", args.round},
         {"bits", args.bits == 0 ? json() : json(args.bits)},
         {"max_bits", args.max_bits},
         {"tiers", answer.tiers},
         {"notes", notes}};
  std::string text;
  std::size_t undecided = 0;
  for (const auto& [name, part] : answer.tensors) {
    const std::string radius = detail::general(part.radius, 17);
    j["parts"][name] = args.bits == 0 ? 1 : parts_of(args.bits);
    j["radius"][name] = radius;
    j["undecided"][name] = part.undecided;
    j["undecided_indices"][name] = part.undecided_indices;
    undecided += part.undecided;
    text += name + ": largest radius " + (args.bits == 0 ? "before rounding " : "of the sum ") + radius +
            (part.undecided > 0 ? "; undecided elements: " + std::to_string(part.undecided) : "") + "\n";
  }
  text = args.output + ": gradients of " + args.problem + ", " + words_for(args, undecided == 0) + "\n" + text;
  text += "groups of heads that share q and k, by the tier that ran last:";
  for (const auto& [tier, groups] : answer.tiers)
    text += (text.ends_with(':') ? " " : ", ") + std::to_string(groups) + " in " + tier;
  text += "\n";
  if (undecided > 0) text += open_text(std::to_string(undecided) + (undecided == 1 ? " element" : " elements"), args);
  for (const auto& note : notes) text += "note: " + note + "\n";
  publish(common, {"oracle", text, j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return undecided > 0 ? 3 : 0;
}

int run(const oracle_arguments& args, const common_options& common) {
  if (args.gradients) return run_gradients(args, common, request_of(args, common));
  golden_request asked = request_of(args, common);
  notes_list notes;
  const safetensors_file source = map_safetensors(args.problem);
  const std::string problem_hash = source.sha256();
  const problem p = parse_problem(source, notes);
  if (const auto sums = inspect_gate_sums(p)) notes.push_back(args.problem + ": " + sums->says);
  const golden answer = [&] {
    progress_line line("reference");
    asked.progress = [&line](std::size_t done, std::size_t all) {
      line.update(static_cast<double>(done) / static_cast<double>(all));
    };
    return write_golden(args.output, p, asked, problem_hash, [&] {
      if (source.changed())
        throw format_error(args.problem + ": changed while it was read; no output was written: run the same command again");
    });
  }();
  if (answer.stopped) {
    say(common, "oracle: " + why_stopped(common) + "; stopped before the reference was complete; nothing was written\n");
    return 3;
  }
  json j{{"schema", "deltaproof.oracle/1"},
         {"output", args.output},
         {"round", args.round},
         {"bits", args.bits == 0 ? json() : json(args.bits)},
         {"max_bits", args.max_bits},
         {"tiers", answer.tiers},
         {"notes", notes}};
  const std::size_t undecided = answer.o.undecided + answer.final_state.undecided;
  std::string text = args.output + ": o and final_state of " + args.problem + ", " + words_for(args, undecided == 0) + "\n";
  for (const auto& [name, part] : {std::pair{"o", &answer.o}, std::pair{"final_state", &answer.final_state}}) {
    const std::string key = name, radius = detail::general(part->radius, 17);
    j["parts"][key] = args.bits == 0 ? 1 : parts_of(args.bits);
    j["radius"][key] = radius;
    j["decided"][key] = part->decided;
    j["undecided"][key] = part->undecided;
    j["undecided_indices"][key] = part->undecided_indices;
    text += key + ": elements by the tier that decided them: " + counts_text(part->decided) + "; largest radius " +
            (args.bits == 0 ? "before rounding " : "of the sum ") + radius + "\n";
  }
  j["fallbacks"] = answer.fallbacks;
  if (!answer.fallbacks.empty()) text += "fall-backs: " + counts_text(answer.fallbacks) + "\n";
  if (undecided > 0)
    text += open_text(
        std::to_string(answer.o.undecided) + " outputs and " + std::to_string(answer.final_state.undecided) + " state entries",
        args);
  for (const auto& note : notes) text += "note: " + note + "\n";
  publish(common, {"oracle", text, j.dump(2, ' ', false, json::error_handler_t::replace) + "\n"});
  return undecided > 0 ? 3 : 0;
}

}  // namespace

verb add_oracle(CLI::App* command, common_options& common) {
  command->footer(
      "Each column v of a head's o and state is computed with more and more precision until all its elements are decided:\n"
      "fp64, double-double, fixed point with 128, 256, 512 and 1024 bits, and exact dyadic numbers (integers times powers "
      "of two: only\n"
      "without gates or with gates of 0 and -inf, without in-kernel normalisation, and where the effective steps b are "
      "dyadic; at most\n"
      "32768 bits a number). A column where these tiers give no correct digit runs again in MPFR, where each number has "
      "its own\n"
      "exponent: with 256 bits, with 1024, and with up to 16384 where its numbers are spread further than 1024 bits.\n"
      "--bits N stores F64 tensors o, o_lo, o_lo2, ... and final_state, final_state_lo, ...: the answer is their "
      "unevaluated sum. N bits need\n"
      "N / 53 tensors, rounded up; each is the correctly rounded remainder after those before it. --bits works with "
      "--round fp64 only;\n"
      "an element that is not a dyadic number is known to about 950 bits at most.\n"
      "An element that no tier decides is NaN in the file (in a sum: the first undecided part and all parts after it).\n"
      "Metadata of o, and of final_state likewise: radius.o, the largest bound on |exact - reference| before rounding "
      "(with --bits on\n"
      "|exact - sum|); tier.o, how many elements each tier decided; undecided.o, how many elements are undecided; "
      "undecided.o.indices, their\n"
      "flat row-major indices as runs, \"5,17-203\" (a list above 40 MB is cut and ends in \",...\": the NaN of the "
      "last part mark all of them);\n"
      "fallbacks, what a tier had to compute again or in a slower way, and how often.\n"
      "--gradients: each group of heads that share q and k runs in fp64, double-double and MPFR of up to 1024 bits. "
      "Where only few elements\n"
      "are still undecided, these run alone. Where all numbers are dyadic as above, a run without any "
      "rounding is tried:\n"
      "with up to 2048 bits for a whole group, with up to 16384 for few elements.\n"
      "Memory: for each thread the state of a head and a block of tokens, and one bit for each output in those blocks "
      "of 128 tokens of a\n"
      "head that hold an undecided output. Outputs wait in a temporary file beside FILE, as large as they are. Memory "
      "grows with T\n"
      "in three cases: the rule is not euler (two numbers a step), a head is run whole (--max-bits below 128 and "
      "magnitudes out of the\n"
      "range of fp64 or double-double), or columns run in MPFR.\n"
      "Memory of --gradients: for each thread about sqrt(T) tokens, and one state for every sqrt(T) tokens. It grows "
      "with T where --bits is\n"
      "given, where MPFR runs a group of heads, and where magnitudes leave the range of fp64: all tokens of such a group are "
      "then in memory.");
  const auto args = std::make_shared<oracle_arguments>();
  common.files.reads(
      command->add_option("PROBLEM", args->problem, "The problem file (deltaproof.problem/1)")->required()->type_name("FILE"));
  common.files.writes(command->add_option("-o,--output", args->output, "The result file to write (deltaproof.result/1)")
                          ->required()
                          ->type_name("FILE"));
  command->add_option("--round", args->round, "Format of the outputs")
      ->check(CLI::Validator(
          [](const std::string& name) {
            constexpr std::string_view known[] = {"bf16", "fp16", "fp32", "fp64"};
            return std::find(std::begin(known), std::end(known), name) != std::end(known)
                       ? std::string()
                       : "'" + name + "' is not a format of outputs; choose from bf16, fp16, fp32, fp64";
          },
          "{bf16,fp16,fp32,fp64}"))
      ->type_name("FORMAT")
      ->capture_default_str();
  command
      ->add_option("--bits", args->bits,
                   "Precision of every element, in bits (53 to 1024); each element is stored as a sum of fp64 numbers")
      ->check(integer_within(53, 1024))
      ->type_name("N");
  command->add_flag(
      "--gradients", args->gradients,
      "Write dq, dk, dv, dbeta, dg and dinitial_state for the problem's do and dfinal_state, instead of o and final_state");
  command
      ->add_option(
          "--max-bits", args->max_bits,
          "Highest working precision, in bits (at 1024, MPFR may use up to 16384); exact dyadic arithmetic is tried at any value")
      ->check(integer_within(53, 1024))
      ->type_name("N")
      ->capture_default_str();
  return [args, &common] { return run(*args, common); };
}

}  // namespace deltaproof::cli
