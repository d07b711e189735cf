# The presets, made from the files: src/plan/presets/<name>.toml is found under its file's name. Their text is part of the
# library, so that the program needs no files beside it.
file(GLOB plan_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/plan/presets/*.toml)
list(TRANSFORM plan_sources REPLACE ".*/(.*)\\.toml$" "\\1" OUTPUT_VARIABLE plan_names)
list(SORT plan_names)
set(plan_entries "")
set(plan_count 0)
foreach(name IN LISTS plan_names)
  set(source ${PROJECT_SOURCE_DIR}/src/plan/presets/${name}.toml)
  file(READ ${source} text)
  string(APPEND plan_entries "  {\"${name}\", R\"toml(${text})toml\"},\n")
  math(EXPR plan_count "${plan_count} + 1")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()
set(plan_table ${PROJECT_BINARY_DIR}/generated/plan_table.cpp)
file(CONFIGURE OUTPUT ${plan_table} @ONLY CONTENT [[
#include <array>
#include "plan/plan_keys.hpp"
namespace deltaproof::plan_detail {
namespace {
constexpr std::array<preset, @plan_count@> found{{
@plan_entries@}};
}  // namespace
std::span<const preset> preset_table() { return found; }
}  // namespace deltaproof::plan_detail
]])
target_sources(deltaproof PRIVATE ${plan_table})
