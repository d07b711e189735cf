// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT

#include "cli/judging.hpp"

#include "cli/numbers.hpp"
#include "cli/stopped.hpp"

namespace deltaproof::cli {

void add_judging_options(CLI::App& command, judging& judge, const std::string& with) {
  command
      .add_option("--false-alarm", judge.false_alarm,
                  with +
                      "Largest probability that a kernel which conforms to its plan is refuted, over all tests of one verdict; "
                      "default 1e-4")
      ->type_name("P")
      ->check(number_within(1e-12, 0.1));
  command
      .add_option("--accuracy", judge.accuracy,
                  with +
                      "Largest relative error that the plan itself may have in final_state and in any range of tokens of o or a "
                      "gradient (default: 8 times the error of its formats alone)")
      ->type_name("E")
      ->check(positive_number());
  command.add_flag_callback(
      "--no-power", [&judge] { judge.power = false; },
      with +
          "Do not search for planted faults: quicker, but no power and no diagnosis, and a fault as small as rounding errors "
          "may pass");
  command.add_option("--max-bits", judge.max_bits, with + "Highest precision of the reference, in bits (53 to 1024)")
      ->type_name("N")
      ->check(integer_within(53, 1024));
  command.add_flag(
      "--strict-padding", judge.strict_padding,
      with +
          "Refute a result where entries of A, Ai and Aqk that no kernel reads are not 0; without this option a note "
          "names them");
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
