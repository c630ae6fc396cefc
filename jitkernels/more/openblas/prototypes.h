// The functions of OpenBLAS that are called, as the cblas.h of the package scipy-openblas32 declares them.
//
// `python -m jitkernels.tools.c_prototypes` makes prototypes.py of this.

typedef enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_ORDER;
typedef enum CBLAS_TRANSPOSE {
  CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113, CblasConjNoTrans = 114
} CBLAS_TRANSPOSE;

char *scipy_openblas_get_config(void);
void scipy_openblas_set_num_threads(int num_threads);

void scipy_cblas_saxpy(const int n, const float alpha, const float *x, const int incx, float *y, const int incy);
void scipy_cblas_sgemv(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE trans, const int m, const int n,
                       const float alpha, const float *a, const int lda, const float *x, const int incx,
                       const float beta, float *y, const int incy);
void scipy_cblas_sgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE trans_a,
                       const enum CBLAS_TRANSPOSE trans_b, const int m, const int n, const int k, const float alpha,
                       const float *a, const int lda, const float *b, const int ldb, const float beta, float *c,
                       const int ldc);

void scipy_cblas_daxpy(const int n, const double alpha, const double *x, const int incx, double *y, const int incy);
void scipy_cblas_dgemv(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE trans, const int m, const int n,
                       const double alpha, const double *a, const int lda, const double *x, const int incx,
                       const double beta, double *y, const int incy);
void scipy_cblas_dgemm(const enum CBLAS_ORDER order, const enum CBLAS_TRANSPOSE trans_a,
                       const enum CBLAS_TRANSPOSE trans_b, const int m, const int n, const int k, const double alpha,
                       const double *a, const int lda, const double *b, const int ldb, const double beta, double *c,
                       const int ldc);
