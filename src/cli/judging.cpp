// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/judging.hpp"

#include "cli/numbers.hpp"
#include "cli/stopped.hpp"

namespace deltaproof::cli {

void add_judging_options(CLI::App& command, judging& judge, const std::string& with) {
  command
      .add_option("--false-alarm", judge.false_alarm,
                  with + "Probability that a kernel which keeps the plan is refuted, for all that is judged together")
      ->type_name("P")
      ->check(number_within(1e-12, 0.1));
  command
      .add_option("--accuracy", judge.accuracy,
                  with +
                      "Relative error the plan itself may have in any horizon bucket (default: 8 times what its formats alone "
                      "cost, three bits, in o and final_state)")
      ->type_name("E")
      ->check(positive_number());
  command.add_flag_callback(
      "--no-power", [&judge] { judge.power = false; },
      with +
          "Do not run the planted faults: no power, no diagnosis, and no limits on their shapes, so that one as small as "
          "rounding may hold");
  command.add_option("--max-bits", judge.max_bits, with + "Highest precision of the reference")
      ->type_name("N")
      ->check(integer_within(53, 1024));
  command.add_flag("--strict-padding", judge.strict_padding,
                   with + "Refute what is not 0 in entries of A, Ai and Aqk that nobody reads; otherwise it is noted");
}

check_options watched(const common_options& common, progress_line& line) {
  check_options how;
  how.threads = common.threads;
  how.stop = &stop_requested();
  how.progress = [&line](const char* what, double share) {
    line.stage(what);
    line.update(share);
  };
  return how;
}

}  // namespace deltaproof::cli
