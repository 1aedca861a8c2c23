# libtorch through imported targets of our own. find_package(Torch) is avoided on purpose: it adds the wheel's include folder as a
# system directory ahead of Debian's, and its bundled fmt and protobuf headers then shadow the ones spdlog and others need.
# -idirafter puts torch's headers behind everything else.
if(NOT TTS_TORCH_ROOT)
  foreach(python ${PROJECT_SOURCE_DIR}/.venv/bin/python3 python3)
    execute_process(
      COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE torch_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND torch_found)
      set(TTS_TORCH_ROOT "${torch_found}" CACHE PATH "Folder of a libtorch (with include/ and lib/)" FORCE)
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${TTS_TORCH_ROOT}/include/ATen/core/Tensor.h")
  message(FATAL_ERROR "No libtorch found. Run scripts/setup, or set TTS_TORCH_ROOT to a folder with include/ and lib/, or build without the model: -DTTS_WITH_TORCH=OFF")
endif()
message(STATUS "libtorch: ${TTS_TORCH_ROOT}")

foreach(part c10 torch_cpu)
  add_library(tts_${part} SHARED IMPORTED)
  set_target_properties(tts_${part} PROPERTIES IMPORTED_LOCATION ${TTS_TORCH_ROOT}/lib/lib${part}.so)
endforeach()
add_library(tts_torch INTERFACE)
target_link_libraries(tts_torch INTERFACE tts_torch_cpu tts_c10)
target_compile_options(tts_torch INTERFACE "SHELL:-idirafter ${TTS_TORCH_ROOT}/include" "SHELL:-idirafter ${TTS_TORCH_ROOT}/include/torch/csrc/api/include")
target_link_options(tts_torch INTERFACE "LINKER:-rpath,${TTS_TORCH_ROOT}/lib")
