// The functions of Intel MKL that are called, as mkl_cblas.h, mkl_vml_functions.h and mkl_service.h declare them for
// 64-bit integers, and fftw3.h those of its interface to transforms, where complex numbers are pairs.
//
// `python -m jitkernels.tools.c_prototypes` makes prototypes.py of this.

typedef enum { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 } CBLAS_TRANSPOSE;
typedef enum { CblasRowOffset = 171, CblasColOffset = 172, CblasFixOffset = 173 } CBLAS_OFFSET;

void MKL_Get_Version_String(char *buffer, int len);
int MKL_Set_Num_Threads_Local(int nth);
int MKL_Set_Threading_Layer(int code);

void cblas_sgemm_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                    const int64_t m, const int64_t n, const int64_t k, const float alpha, const float *a,
                    const int64_t lda, const float *b, const int64_t ldb, const float beta, float *c,
                    const int64_t ldc);
void cblas_sgemm_batch_strided_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a,
                                  const CBLAS_TRANSPOSE trans_b, const int64_t m, const int64_t n, const int64_t k,
                                  const float alpha, const float *a, const int64_t lda, const int64_t stride_a,
                                  const float *b, const int64_t ldb, const int64_t stride_b, const float beta,
                                  float *c, const int64_t ldc, const int64_t stride_c, const int64_t batch_size);
void cblas_sgemv_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a, const int64_t m, const int64_t n,
                    const float alpha, const float *a, const int64_t lda, const float *x, const int64_t incx,
                    const float beta, float *y, const int64_t incy);

void cblas_dgemm_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                    const int64_t m, const int64_t n, const int64_t k, const double alpha, const double *a,
                    const int64_t lda, const double *b, const int64_t ldb, const double beta, double *c,
                    const int64_t ldc);
void cblas_dgemm_batch_strided_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a,
                                  const CBLAS_TRANSPOSE trans_b, const int64_t m, const int64_t n, const int64_t k,
                                  const double alpha, const double *a, const int64_t lda, const int64_t stride_a,
                                  const double *b, const int64_t ldb, const int64_t stride_b, const double beta,
                                  double *c, const int64_t ldc, const int64_t stride_c, const int64_t batch_size);
void cblas_dgemv_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a, const int64_t m, const int64_t n,
                    const double alpha, const double *a, const int64_t lda, const double *x, const int64_t incx,
                    const double beta, double *y, const int64_t incy);

void cblas_gemm_s8u8s32_64(const CBLAS_LAYOUT layout, const CBLAS_TRANSPOSE trans_a, const CBLAS_TRANSPOSE trans_b,
                           const CBLAS_OFFSET offset_c, const int64_t m, const int64_t n, const int64_t k,
                           const float alpha, const void *a, const int64_t lda, const char ao, const void *b,
                           const int64_t ldb, const char bo, const float beta, int *c, const int64_t ldc,
                           const int *cb);

void vmsExp_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsSqr_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsSqrt_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsInvSqrt_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsTanh_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsLn_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsErf_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsSin_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsCos_64(const int64_t n, const float *a, float *r, int64_t mode);
void vmsMul_64(const int64_t n, const float *a, const float *b, float *r, int64_t mode);
void vmsAdd_64(const int64_t n, const float *a, const float *b, float *r, int64_t mode);
void vmsSub_64(const int64_t n, const float *a, const float *b, float *r, int64_t mode);
void vmsPow_64(const int64_t n, const float *a, const float *b, float *r, int64_t mode);
void vmdExp_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdSqr_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdSqrt_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdInvSqrt_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdTanh_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdLn_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdErf_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdSin_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdCos_64(const int64_t n, const double *a, double *r, int64_t mode);
void vmdMul_64(const int64_t n, const double *a, const double *b, double *r, int64_t mode);
void vmdAdd_64(const int64_t n, const double *a, const double *b, double *r, int64_t mode);
void vmdSub_64(const int64_t n, const double *a, const double *b, double *r, int64_t mode);
void vmdPow_64(const int64_t n, const double *a, const double *b, double *r, int64_t mode);

void *fftwf_plan_guru64_dft(int rank, const void *dims, int howmany_rank, const void *howmany_dims, float *in, float *out,
                             int sign, unsigned flags);
void *fftwf_plan_guru64_dft_r2c(int rank, const void *dims, int howmany_rank, const void *howmany_dims, float *in,
                                 float *out, unsigned flags);
void *fftwf_plan_guru64_dft_c2r(int rank, const void *dims, int howmany_rank, const void *howmany_dims, float *in,
                                 float *out, unsigned flags);
void fftwf_execute_dft(const void *plan, float *in, float *out);
void fftwf_execute_dft_r2c(const void *plan, float *in, float *out);
void fftwf_execute_dft_c2r(const void *plan, float *in, float *out);
void fftwf_destroy_plan(void *plan);

void *fftw_plan_guru64_dft(int rank, const void *dims, int howmany_rank, const void *howmany_dims, double *in, double *out,
                            int sign, unsigned flags);
void *fftw_plan_guru64_dft_r2c(int rank, const void *dims, int howmany_rank, const void *howmany_dims, double *in,
                                double *out, unsigned flags);
void *fftw_plan_guru64_dft_c2r(int rank, const void *dims, int howmany_rank, const void *howmany_dims, double *in,
                                double *out, unsigned flags);
void fftw_execute_dft(const void *plan, double *in, double *out);
void fftw_execute_dft_r2c(const void *plan, double *in, double *out);
void fftw_execute_dft_c2r(const void *plan, double *in, double *out);
void fftw_destroy_plan(void *plan);
