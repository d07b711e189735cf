# One table of the studies and their pages, made from the files: src/studies/foo_bar/study.cpp defines `extern const study
# foo_bar_study` and is found under the name it gives itself, "foo-bar"; src/studies/foo_bar/page.md is its page, whose text is
# part of the library, so that the program needs no files.
# A static library drops objects that only register themselves, so the table names each study.
file(GLOB study_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/studies/*/study.cpp)
list(TRANSFORM study_sources REPLACE ".*/studies/([a-z0-9_]+)/study[.]cpp$" "\\1" OUTPUT_VARIABLE study_names)
list(SORT study_names)
set(study_declarations "")
set(study_entries "")
set(study_count 0)
foreach(name IN LISTS study_names)
  set(study_page ${PROJECT_SOURCE_DIR}/src/studies/${name}/page.md)
  file(READ ${study_page} text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${study_page})
  string(APPEND study_declarations "extern const study ${name}_study;\n")
  string(APPEND study_entries "  {&${name}_study, R\"page(${text})page\"},\n")
  math(EXPR study_count "${study_count} + 1")
endforeach()
set(problem_page ${PROJECT_SOURCE_DIR}/src/study/problem_report/page.md)
file(READ ${problem_page} problem_text)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${problem_page})
set(study_table ${PROJECT_BINARY_DIR}/generated/study_table.cpp)
file(CONFIGURE OUTPUT ${study_table} @ONLY CONTENT [[
#include <array>
#include "study/page.hpp"
namespace deltaproof {
@study_declarations@
namespace {
constexpr std::array<detail::study_entry, @study_count@> found{{
@study_entries@}};
}  // namespace
std::span<const detail::study_entry> detail::study_table() { return found; }
std::string_view detail::problem_report_page() { return R"page(@problem_text@)page"; }
}  // namespace deltaproof
]])
target_sources(deltaproof_research PRIVATE ${study_table})
