// SPDX-FileCopyrightText: 2026 The deltaproof authors
// SPDX-License-Identifier: MIT
//
// Prints what the canary says of the flags this program was compiled with; succeeds if a fault contains
// the argument, or without an argument if there is none. 77: this processor cannot show the fault.
#include <cstdio>
#include <string>

#include "deltaproof/number/canary.hpp"

int main(int argc, char** argv) {
#if defined(__FMA__)
  if (!__builtin_cpu_supports("fma")) {
    std::puts("skipped: the processor has no fma");
    return 77;
  }
#endif
  const auto faults = deltaproof::environment_faults_here();
  for (const std::string& fault : faults) std::puts(fault.c_str());
  if (argc < 2) return faults.empty() ? 0 : 1;
  for (const std::string& fault : faults) {
    if (fault.find(argv[1]) != std::string::npos) return 0;
  }
  std::printf("no fault mentions '%s'\n", argv[1]);
  return 1;
}
