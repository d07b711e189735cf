# Small files of one subject that read the same headers are compiled together: most of a unit's time goes into its headers, and
# those who fetch the library compile it once. Each file still stands alone (tests/house/syntax.sh compiles it so). A file that
# no line names is a unit of its own.
#   deltaproof_group(TARGET NAME FILE...)   files below src/, without .cpp
function(deltaproof_group target name)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/)
  list(TRANSFORM ARGN APPEND .cpp)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${name})
endfunction()

# What a verdict waits for: -O3.
deltaproof_group(deltaproof_engines number number/canary number/elementary number/printable number/random number/text scan/chunk_bounds)
deltaproof_group(deltaproof_engines algebra algebra/growth algebra/mapped_bytes algebra/tensor algebra/tensor_view)
deltaproof_group(deltaproof_engines oracle_answer oracle/solve/answer oracle/solve/fresh oracle/solve/solve)
deltaproof_group(deltaproof_engines oracle_problem oracle/inspect oracle/measure oracle/problem)
deltaproof_group(deltaproof_engines oracle_lower oracle/lower oracle/solve/row_by_row)
deltaproof_group(deltaproof_engines oracle_integers oracle/tiers/integer_rows oracle/tiers/integer_steps)
deltaproof_group(deltaproof_engines emulate kernel/emulate/emulate kernel/emulate/eager kernel/emulate/products)
deltaproof_group(deltaproof_engines faults_of_inputs kernel/emulate/faults kernel/emulate/faults_gates kernel/emulate/faults_heads
  kernel/emulate/faults_inputs)
deltaproof_group(deltaproof_engines faults_of_results kernel/emulate/faults_chunk kernel/emulate/faults_output kernel/emulate/faults_precision
  kernel/emulate/faults_state)
deltaproof_group(deltaproof_engines stages kernel/stages kernel/stages/finer kernel/stages/gram kernel/stages/inverse kernel/stages/roundings)
deltaproof_group(deltaproof_engines stages_of_heads kernel/stages/head kernel/stages/head_measurement kernel/stages/head_stages
  kernel/stages/head_state kernel/stages/parts kernel/stages/tally)
deltaproof_group(deltaproof_engines draws kernel/referee/draws kernel/referee/lanes kernel/referee/reach)

# What runs once a verdict.
deltaproof_group(deltaproof_plain plan kernel/plan kernel/plan_variants)
deltaproof_group(deltaproof_plain toml kernel/plan_toml kernel/suite_toml)
deltaproof_group(deltaproof_plain regimes kernel/regimes kernel/regime_keys kernel/regime_laws)
deltaproof_group(deltaproof_plain files kernel/read_file kernel/safetensors)
deltaproof_group(deltaproof_plain exchange kernel/exchange kernel/slice kernel/view)
deltaproof_group(deltaproof_plain golden kernel/golden kernel/golden_file kernel/golden_gradients)
deltaproof_group(deltaproof_plain check kernel/check kernel/check_coverage kernel/check_unread kernel/check_gradients)
deltaproof_group(deltaproof_plain views kernel/check_views kernel/invariant_views kernel/suite_views)
deltaproof_group(deltaproof_plain invariant kernel/invariant kernel/invariant_packing kernel/invariant_parts)
deltaproof_group(deltaproof_plain witness kernel/witness kernel/witness_files)
deltaproof_group(deltaproof_plain suite kernel/judging_options kernel/nearest_name kernel/request kernel/suite)
deltaproof_group(deltaproof_plain inverses kernel/inverse_runs_16_bit kernel/inverse_runs_mixed kernel/inverse_runs_wide)
deltaproof_group(deltaproof_plain referee kernel/referee/epsilon kernel/referee/faults kernel/referee/referee)
deltaproof_group(deltaproof_plain testing testing/problem_case testing/trial)
deltaproof_group(deltaproof_engines inverse_trial kernel/inverse_inputs kernel/inverse_trial)

# A study, or part of a large one, is a unit; and so are the claims of a few subjects.
if(DELTAPROOF_RESEARCH)
  set(files_of_unit 4)
  # Names of these are names of others in their folder as well.
  list(FILTER research_sources EXCLUDE REGEX "eigenvalues/rules|study/gnuplot")
  foreach(source IN LISTS research_sources)
    string(REGEX REPLACE "^src/(.*)[.]cpp$" "\\1" file ${source})
    string(REGEX REPLACE "^studies/([a-z_0-9]+)(/.*)?$" "studies/\\1/" folder ${file})
    string(REGEX REPLACE "/[a-z_0-9]*$" "" folder ${folder})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR count_${folder} "0${count_${folder}} + 1")
    math(EXPR part "(${count_${folder}} - 1) / ${files_of_unit}")
    deltaproof_group(deltaproof_research ${folder}_${part} ${file})
  endforeach()
endif()
