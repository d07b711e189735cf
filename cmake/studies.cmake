# One table of the studies, made from their file names: src/studies/foo_bar.cpp defines
# `extern const study foo_bar_study` and is found under the name it gives itself, "foo-bar".
# A static library drops objects that only register themselves, so the table names each study.
file(GLOB study_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/studies/*.cpp)
list(SORT study_sources)
set(study_declarations "")
set(study_entries "")
set(study_count 0)
foreach(source IN LISTS study_sources)
  get_filename_component(name ${source} NAME_WE)
  string(APPEND study_declarations "extern const study ${name}_study;\n")
  string(APPEND study_entries "  &${name}_study,\n")
  math(EXPR study_count "${study_count} + 1")
endforeach()
set(study_table ${PROJECT_BINARY_DIR}/generated/study_table.cpp)
file(CONFIGURE OUTPUT ${study_table} @ONLY CONTENT [[
#include <array>
#include "study/table.hpp"
namespace deltaproof {
@study_declarations@
namespace {
constexpr std::array<const study*, @study_count@> found{{
@study_entries@}};
}  // namespace
std::span<const study* const> detail::study_table() { return found; }
}  // namespace deltaproof
]])
target_sources(deltaproof_research PRIVATE ${study_table})
