// What the files beside this one were made from, with nvcc and ptxas:
//   zstd.fatbin           13.0  --compress-mode=size -gencode arch=compute_90,code=[sm_90,compute_90]
//   architectures.fatbin  13.0  -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=sm_90a
//   virtual_80.fatbin     13.0  -gencode arch=compute_80,code=sm_90
//   cuda12.cubin          12.8  -arch sm_70, of a kernel with the same variables and bounds
//   lz4.fatbin            12.4  the entry for sm_90 of PyTorch 2.6's spin_kernel, as its libtorch_cuda.so has it
__constant__ int c[100];
extern "C" __global__ void __launch_bounds__(96) k(int* p, int i) {
  __shared__ int s[75];
  volatile int l[50];
  l[i] = s[i] + c[i];
  s[p[i]] = l[p[i]];
  __syncthreads();
  *p = s[i + 1];
}
