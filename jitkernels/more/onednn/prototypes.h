// The functions of oneDNN that are called, as dnnl.h of version 3 declares them, and those of its OpenMP runtime.
//
// `python -m jitkernels.tools.c_prototypes` makes prototypes.py of this, and primitive_cache.c takes the types of its
// functions from it. Handles are opaque pointers.

typedef int dnnl_status_t;
typedef int dnnl_engine_kind_t;
typedef int dnnl_prop_kind_t;
typedef int dnnl_alg_kind_t;
typedef int dnnl_data_type_t;
typedef int dnnl_format_tag_t;
typedef int dnnl_query_t;
typedef int dnnl_rnn_direction_t;
typedef int dnnl_scratchpad_mode_t;
typedef int64_t dnnl_dim_t;
typedef void *dnnl_engine_t;
typedef void *dnnl_stream_t;
typedef void *dnnl_memory_t;
typedef void *dnnl_memory_desc_t;
typedef void *dnnl_primitive_t;
typedef void *dnnl_primitive_attr_t;
typedef void *dnnl_primitive_desc_t;
typedef struct { int arg; dnnl_memory_t memory; } dnnl_exec_arg_t;
typedef struct {
  int major, minor, patch;
  const char *hash;
  unsigned cpu_runtime, gpu_runtime;
} dnnl_version_t;

int omp_get_max_threads(void);
void omp_set_num_threads(int num_threads);

const dnnl_version_t *dnnl_version(void);
dnnl_status_t dnnl_sgemm(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha,
                         const float *a, dnnl_dim_t lda, const float *b, dnnl_dim_t ldb, float beta, float *c,
                         dnnl_dim_t ldc);
dnnl_status_t dnnl_gemm_u8s8s32(char transa, char transb, char offsetc, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const uint8_t *a, dnnl_dim_t lda, uint8_t ao, const int8_t *b,
                                dnnl_dim_t ldb, int8_t bo, float beta, int32_t *c, dnnl_dim_t ldc,
                                const int32_t *co);
dnnl_status_t dnnl_gemm_s8s8s32(char transa, char transb, char offsetc, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                float alpha, const int8_t *a, dnnl_dim_t lda, int8_t ao, const int8_t *b,
                                dnnl_dim_t ldb, int8_t bo, float beta, int32_t *c, dnnl_dim_t ldc,
                                const int32_t *co);
dnnl_status_t dnnl_engine_create(dnnl_engine_t *engine, dnnl_engine_kind_t kind, size_t index);
dnnl_status_t dnnl_stream_create(dnnl_stream_t *stream, dnnl_engine_t engine, unsigned flags);
dnnl_status_t dnnl_stream_destroy(dnnl_stream_t stream);
dnnl_status_t dnnl_primitive_attr_create(dnnl_primitive_attr_t *attr);
dnnl_status_t dnnl_primitive_attr_destroy(dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_primitive_attr_set_scratchpad_mode(dnnl_primitive_attr_t attr, dnnl_scratchpad_mode_t mode);
dnnl_status_t dnnl_memory_desc_create_with_strides(dnnl_memory_desc_t *memory_desc, int ndims, const int64_t *dims,
                                                   dnnl_data_type_t data_type, const int64_t *strides);
dnnl_status_t dnnl_memory_desc_create_with_tag(dnnl_memory_desc_t *memory_desc, int ndims, const int64_t *dims,
                                               dnnl_data_type_t data_type, dnnl_format_tag_t tag);
dnnl_status_t dnnl_memory_desc_destroy(dnnl_memory_desc_t memory_desc);
size_t dnnl_memory_desc_get_size(dnnl_memory_desc_t memory_desc);
dnnl_status_t dnnl_memory_create(dnnl_memory_t *memory, dnnl_memory_desc_t memory_desc, dnnl_engine_t engine,
                                 void *handle);
dnnl_status_t dnnl_memory_destroy(dnnl_memory_t memory);
dnnl_status_t dnnl_memory_set_data_handle(dnnl_memory_t memory, void *handle);
dnnl_status_t dnnl_softmax_forward_primitive_desc_create(
    dnnl_primitive_desc_t *primitive_desc, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind, dnnl_alg_kind_t alg_kind,
    dnnl_memory_desc_t src_desc, dnnl_memory_desc_t dst_desc, int softmax_axis, dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_layer_normalization_forward_primitive_desc_create(
    dnnl_primitive_desc_t *primitive_desc, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_memory_desc_t src_desc, dnnl_memory_desc_t dst_desc, dnnl_memory_desc_t stat_desc, float epsilon,
    unsigned flags, dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_lstm_forward_primitive_desc_create(
    dnnl_primitive_desc_t *primitive_desc, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_rnn_direction_t direction, dnnl_memory_desc_t src_layer_desc, dnnl_memory_desc_t src_iter_desc,
    dnnl_memory_desc_t src_iter_c_desc, dnnl_memory_desc_t weights_layer_desc, dnnl_memory_desc_t weights_iter_desc,
    dnnl_memory_desc_t weights_peephole_desc, dnnl_memory_desc_t weights_projection_desc,
    dnnl_memory_desc_t bias_desc, dnnl_memory_desc_t dst_layer_desc, dnnl_memory_desc_t dst_iter_desc,
    dnnl_memory_desc_t dst_iter_c_desc, unsigned flags, dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_lbr_gru_forward_primitive_desc_create(
    dnnl_primitive_desc_t *primitive_desc, dnnl_engine_t engine, dnnl_prop_kind_t prop_kind,
    dnnl_rnn_direction_t direction, dnnl_memory_desc_t src_layer_desc, dnnl_memory_desc_t src_iter_desc,
    dnnl_memory_desc_t weights_layer_desc, dnnl_memory_desc_t weights_iter_desc, dnnl_memory_desc_t bias_desc,
    dnnl_memory_desc_t dst_layer_desc, dnnl_memory_desc_t dst_iter_desc, unsigned flags, dnnl_primitive_attr_t attr);
dnnl_status_t dnnl_reorder_primitive_desc_create(dnnl_primitive_desc_t *reorder_primitive_desc,
                                                 dnnl_memory_desc_t src_desc, dnnl_engine_t src_engine,
                                                 dnnl_memory_desc_t dst_desc, dnnl_engine_t dst_engine,
                                                 dnnl_primitive_attr_t attr);
dnnl_memory_desc_t dnnl_primitive_desc_query_md(dnnl_primitive_desc_t primitive_desc, dnnl_query_t what, int index);
dnnl_status_t dnnl_primitive_desc_destroy(dnnl_primitive_desc_t primitive_desc);
dnnl_status_t dnnl_primitive_create(dnnl_primitive_t *primitive, dnnl_primitive_desc_t primitive_desc);
dnnl_status_t dnnl_primitive_destroy(dnnl_primitive_t primitive);
dnnl_status_t dnnl_primitive_execute(dnnl_primitive_t primitive, dnnl_stream_t stream, int nargs,
                                     const dnnl_exec_arg_t *args);
