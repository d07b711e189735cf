// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
#include "deltaproof/number/canary.hpp"

namespace deltaproof {

std::vector<std::string> environment_faults() { return environment_faults_here(); }

void require_sound_environment() {
  std::string message;
  for (const std::string& fault : environment_faults()) message += "\n  " + fault;
  if (!message.empty())
    throw environment_error("the floating-point environment is not the default of IEEE 754, which deltaproof needs:" + message);
}

}  // namespace deltaproof
