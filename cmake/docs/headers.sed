# The paragraph at the top of a header, as what the file's page says first.
1,/^#pragma once/{
  /^#pragma once/!{
    s|^// SPDX.*||
    s|^//$|/// @file\n/// @brief|
    s|^// |/// |
  }
}
