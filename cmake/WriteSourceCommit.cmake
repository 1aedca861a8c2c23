# Run with -P at build time: writes OUTPUT with the commit that SOURCE is at, and touches it only when that changes.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit)
  set(commit "commit unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\ninline constexpr const char* kSourceCommit = \"@commit@\";\n" @ONLY)
