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
# libtorch exports parts of the standard library, so that the real one has to come first.
target_link_libraries(tts_torch INTERFACE stdc++ tts_torch_cpu tts_c10)
target_compile_definitions(tts_torch INTERFACE AT_PER_OPERATOR_HEADERS)  # ATen headers then include the operators they use, not all
target_compile_options(tts_torch INTERFACE "SHELL:-idirafter ${TTS_TORCH_ROOT}/include" "SHELL:-idirafter ${TTS_TORCH_ROOT}/include/torch/csrc/api/include")
# Programs that call nothing of libtorch do not load it: that alone would take 100 MB.
target_link_options(tts_torch INTERFACE "LINKER:-rpath,${TTS_TORCH_ROOT}/lib" "LINKER:--as-needed")

# A CUDA build of libtorch also needs the toolkit's headers: an installed CUDA toolkit, or the ones that come with the wheel together with
# those that scripts/setup adds. Without them everything but GPUs works.
set(TTS_WITH_CUDA OFF)
if(EXISTS ${TTS_TORCH_ROOT}/lib/libtorch_cuda.so)
  file(GLOB wheel_cuda ${TTS_TORCH_ROOT}/../nvidia/cu[0-9]*)
  set(cuda_include "")
  foreach(place ${wheel_cuda} $ENV{CUDA_HOME} /usr/local/cuda)
    if(NOT cuda_include AND EXISTS ${place}/include/cublas_v2.h AND EXISTS ${place}/include/crt/host_defines.h AND EXISTS ${place}/include/nv/target)
      set(cuda_include ${place}/include)
    endif()
  endforeach()
  if(NOT TTS_CUDA_INCLUDE)
    set(TTS_CUDA_INCLUDE "${cuda_include}" CACHE PATH "Folder of the CUDA toolkit's headers; empty = looked for" FORCE)
  endif()
  if(TTS_CUDA_INCLUDE)
    set(TTS_WITH_CUDA ON)
  else()
    message(WARNING "This libtorch has CUDA, but the CUDA toolkit's headers are not all here: building without GPUs. Install a CUDA toolkit (CUDA_HOME), "
      "or beside the wheel nvidia-cuda-crt and nvidia-cuda-cccl of the same CUDA version with pip.")
  endif()
endif()
if(TTS_WITH_CUDA)
  file(GLOB cudart ${wheel_cuda}/lib/libcudart.so.* ${TTS_CUDA_INCLUDE}/../lib64/libcudart.so)
  list(GET cudart 0 TTS_CUDART)
  message(STATUS "CUDA headers: ${TTS_CUDA_INCLUDE}; runtime: ${TTS_CUDART}")
  foreach(part c10_cuda torch_cuda)
    add_library(tts_${part} SHARED IMPORTED)
    set_target_properties(tts_${part} PROPERTIES IMPORTED_LOCATION ${TTS_TORCH_ROOT}/lib/lib${part}.so)
  endforeach()
  # Nothing of ours calls into libtorch_cuda, it registers its kernels when it is loaded: it must stay although it looks unused.
  add_library(tts_torch_cuda_all INTERFACE)
  target_link_libraries(tts_torch_cuda_all INTERFACE tts_torch
    "-Wl,--push-state,--no-as-needed" tts_torch_cuda "-Wl,--pop-state" tts_c10_cuda ${TTS_CUDART})
  target_compile_options(tts_torch_cuda_all INTERFACE "SHELL:-idirafter ${TTS_CUDA_INCLUDE}")
endif()

# libtorch with what it has for GPUs: for programs and libraries that run tensors.
add_library(tts_torch_devices INTERFACE)
target_link_libraries(tts_torch_devices INTERFACE $<IF:$<BOOL:${TTS_WITH_CUDA}>,tts_torch_cuda_all,tts_torch>)

# What stands behind src/model/torch/runtime.h. Compiled only: who uses it links tts_torch_devices.
function(tts_add_device_runtime target)
  if(TTS_WITH_CUDA)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/model/torch/cuda/cuda_runtime.cpp)
    target_compile_definitions(${target} PRIVATE TTS_WITH_CUDA=1)
    target_compile_options(${target} PRIVATE "SHELL:-idirafter ${TTS_CUDA_INCLUDE}")
  else()
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/model/torch/cuda/no_cuda.cpp)
  endif()
endfunction()

# The part of the model module that runs on libtorch, which programs load when they need it (src/model/tensor_backend.h). It carries its own
# copy of what it shares with them and shows one function.
function(tts_add_tensor_library)
  add_library(tts_tensors MODULE ${PROJECT_SOURCE_DIR}/src/model/torch/plugin/tensor_backend_library.cpp)
  set_target_properties(tts_tensors PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  target_include_directories(tts_tensors PRIVATE ${PROJECT_SOURCE_DIR}/src/model)
  target_link_libraries(tts_tensors PRIVATE tts_options tts::model tts_torch_devices)
  target_link_options(tts_tensors PRIVATE LINKER:--exclude-libs,ALL)

  # Two files can be mixed up, and would then disagree about what lies where: the function's name says which headers both were built with.
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/tts/base/*.h ${PROJECT_SOURCE_DIR}/include/tts/engine/*.h
    ${PROJECT_SOURCE_DIR}/include/tts/model/*.h)
  list(APPEND headers ${PROJECT_SOURCE_DIR}/src/model/tensor_backend.h ${PROJECT_SOURCE_DIR}/src/model/torch/device_plan.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(interface "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  foreach(header IN LISTS headers)
    file(SHA256 ${header} hash)
    string(APPEND interface " ${hash}")
  endforeach()
  string(SHA256 interface "${interface}")
  string(SUBSTRING ${interface} 0 16 interface)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/model/tensor_backend.cpp PROPERTIES
    COMPILE_DEFINITIONS TTS_TENSOR_BACKEND_ENTRY="tts_tensor_backend_${interface}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/model/torch/plugin/tensor_backend_library.cpp PROPERTIES
    COMPILE_DEFINITIONS TTS_TENSOR_BACKEND_ENTRY=tts_tensor_backend_${interface})
endfunction()
