# Makes the targets example_cuda and example_torch of what is installed. With the CUDA toolkit, a program needs no more than
#   find_package(CUDAToolkit)   CUDA::cudart
#   find_package(Torch)         ${TORCH_LIBRARIES}
# Without nvcc, which PyTorch's package insists on, the headers and libraries of PyTorch's and NVIDIA's wheels are enough for
# programs that have no kernels; that is what the rest is for.
option(WITHOUT_CUDA_TOOLKIT "Use the headers and libraries of PyTorch's and NVIDIA's wheels" OFF)

find_path(torch_cmake_folder Torch/TorchConfig.cmake PATH_SUFFIXES share/cmake)
get_filename_component(torch_folder ${torch_cmake_folder}/../.. ABSOLUTE)

if(NOT WITHOUT_CUDA_TOOLKIT)
  find_package(CUDAToolkit QUIET)
endif()
if(TARGET CUDA::cudart)
  add_library(example_cuda INTERFACE)
  target_link_libraries(example_cuda INTERFACE CUDA::cudart)
else()
  # Triton's wheel has all of CUDA's headers, NVIDIA's have them in several.
  file(GLOB wheels ${torch_folder}/../nvidia/cu[0-9]* ${torch_folder}/../nvidia/cuda_runtime)
  find_path(CUDA_HEADERS crt/host_config.h PATHS ${torch_folder}/../triton/backends/nvidia/include ${wheels}
            PATH_SUFFIXES include)
  find_library(CUDA_RUNTIME NAMES cudart libcudart.so.13 libcudart.so.12 PATHS ${wheels} PATH_SUFFIXES lib)
  if(CUDA_HEADERS AND CUDA_RUNTIME)
    add_library(example_cuda INTERFACE)
    target_include_directories(example_cuda SYSTEM INTERFACE ${CUDA_HEADERS})
    target_link_libraries(example_cuda INTERFACE ${CUDA_RUNTIME})
  endif()
endif()

if(NOT torch_cmake_folder OR NOT TARGET example_cuda OR NOT EXISTS ${torch_folder}/lib/libc10_cuda.so)
  return()
endif()
if(CUDAToolkit_NVCC_EXECUTABLE AND NOT WITHOUT_CUDA_TOOLKIT)
  message(STATUS "libtorch: by its CMake package")
  find_package(Torch REQUIRED)
  add_library(example_torch INTERFACE)
  target_link_libraries(example_torch INTERFACE ${TORCH_LIBRARIES} example_cuda)
else()
  message(STATUS "libtorch: by the files in ${torch_folder}")
  add_library(example_torch INTERFACE)
  target_compile_features(example_torch INTERFACE cxx_std_20)
  target_include_directories(example_torch SYSTEM INTERFACE
    ${torch_folder}/include ${torch_folder}/include/torch/csrc/api/include)
  # libtorch_cuda.so registers the operations of the GPU when it is loaded, though no symbol of it is needed.
  target_link_libraries(example_torch INTERFACE -Wl,--no-as-needed)
  foreach(library torch torch_cpu torch_cuda c10 c10_cuda)
    target_link_libraries(example_torch INTERFACE ${torch_folder}/lib/lib${library}.so)
  endforeach()
  target_link_libraries(example_torch INTERFACE -Wl,--as-needed example_cuda)
endif()
