// Softmax and layer normalisation by primitives of oneDNN.

#include <math.h>

// Descriptors of a shape's primitive and its arguments; the caller destroys all of them.
typedef struct { object attributes, data, vector, described; } parts;

static int describe(const shape *of, parts *p) {
  int64_t sizes[] = {of->sizes[0], of->sizes[1]}, strides[] = {of->sizes[1], 1};
  int status;
  if ((status = dnnl.attr_create(&p->attributes))) return status;
  if ((status = dnnl.attr_set_scratchpad_mode(p->attributes, SCRATCHPAD_OF_USER))) return status;
  if ((status = dnnl.memory_desc_create_with_strides(&p->data, 2, sizes, FLOAT32, strides))) return status;
  if (of->kind == SOFTMAX)
    return dnnl.softmax_desc_create(
        &p->described, engine, INFERENCE, SOFTMAX_ACCURATE, p->data, p->data, 1, p->attributes);
  if ((status = dnnl.memory_desc_create_with_strides(&p->vector, 1, &of->sizes[1], FLOAT32, &strides[1]))) return status;
  unsigned flags = of->kind == LAYER_NORM ? USE_SCALE | USE_SHIFT : 0;
  return dnnl.layer_norm_desc_create(
      &p->described, engine, INFERENCE, p->data, p->data, NULL, of->eps, flags, p->attributes);
}

static int make_of(slot *new, const parts *p) {
  int status;
  if ((status = add_primitive(new, p->described))) return status;
  if ((status = add_argument(new, SOURCE, p->data, NULL))) return status;
  if ((status = add_argument(new, DESTINATION, p->data, NULL))) return status;
  if (new->of.kind == LAYER_NORM) {
    if ((status = add_argument(new, SCALE, p->vector, NULL))) return status;
    if ((status = add_argument(new, SHIFT, p->vector, NULL))) return status;
  }
  return add_scratchpad(new, p->described);
}

static int fill(slot *new, const shape *of) {
  parts p = {0};
  int status = describe(of, &p);
  if (!status) status = make_of(new, &p);
  if (p.described) dnnl.desc_destroy(p.described);
  if (p.vector) dnnl.memory_desc_destroy(p.vector);
  if (p.data) dnnl.memory_desc_destroy(p.data);
  if (p.attributes) dnnl.attr_destroy(p.attributes);
  return status;
}

static int run(const shape *of, void *const *arrays) {
  slot *own, spare;
  int status = take(&own, &spare, of);
  if (status) return status;
  status = run_taken(own, arrays, of->kind == LAYER_NORM ? 4 : 2, NULL);
  release(own, &spare);
  return status;
}

// How to handle a row that the primitive must not compute.
enum { ORDINARY, UNDEFINED, CONSTANT, FINE };

// Bits of a float as an integer of the same order: NaN sort beyond the infinities.
static int32_t ordered(const float *x) {
  int32_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits ^ (bits >> 31 & 0x7fffffff);
}

// Softmax of a row whose maximum is NaN or an infinity is NaN, where primitives return numbers; and they flush
// subnormal results to zero.
static int kind_for_softmax(const float *x, int64_t n) {
  const int32_t infinity = 0x7f800000, minus_infinity = ~infinity;
  int32_t largest = minus_infinity, smallest = infinity, subnormal = 0;
  for (int64_t i = 0; i < n; i++) {
    int32_t key = ordered(x + i);
    largest = key > largest ? key : largest;
    smallest = key < smallest ? key : smallest;
  }
  if (largest >= infinity || largest == minus_infinity || smallest < minus_infinity) return UNDEFINED;
  int32_t bits = largest ^ (largest >> 31 & 0x7fffffff);
  float maximum;
  memcpy(&maximum, &bits, sizeof bits);
  float above = maximum - 104.0f, below = maximum - 87.0f;
  if (ordered(&below) <= smallest) return ORDINARY;
  for (int64_t i = 0; i < n; i++) subnormal |= (x[i] > above) & (x[i] < below);
  return subnormal ? FINE : ORDINARY;
}

// The mean of equal numbers is that number, which the primitive, with its product by 1 / n, may miss by a unit in the
// last place; and squares of tiny numbers must not underflow where there is no eps, nor those of large ones overflow.
static int kind_for_layer_norm(const float *x, int64_t n, float eps) {
  if (eps < 1e-30f) return FINE;
  int32_t large = 0, different = 0;
  for (int64_t i = 0; i < n; i++) {
    large |= fabsf(x[i]) > 1e18f;
    different |= x[i] != x[0];
  }
  if (large) return FINE;
  return different ? ORDINARY : CONSTANT;
}

static int kind_of(const shape *of, const float *x) {
  return of->kind == SOFTMAX ? kind_for_softmax(x, of->sizes[1]) : kind_for_layer_norm(x, of->sizes[1], of->eps);
}

static void softmax_of_kind(int kind, const float *x, float *y, int64_t n) {
  float maximum = -INFINITY;
  double sum = 0;
  for (int64_t i = 0; i < n; i++) maximum = x[i] > maximum ? x[i] : maximum;
  for (int64_t i = 0; i < n; i++) sum += expf(x[i] - maximum);
  for (int64_t i = 0; i < n; i++) y[i] = kind == UNDEFINED ? NAN : expf(x[i] - maximum) / sum;
}

static void layer_norm_of_kind(int kind, const float *x, const float *scale, const float *shift, float *y, int64_t n,
                        double eps, int affine) {
  double mean = x[0], squares = 0;
  if (kind == FINE) {
    for (int64_t i = 1; i < n; i++) mean += x[i];
    mean /= n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  }
  double deviation = sqrt(squares / n + eps);
  for (int64_t i = 0; i < n; i++) {
    double z = (x[i] - mean) / deviation;
    y[i] = affine ? z * scale[i] + shift[i] : z;
  }
}

// Rows are split into powers of two, the largest of which have at most MAX_PRIMITIVE_ELEMENTS elements: so that a new
// number of rows needs no new primitives.
static int64_t primitives(int64_t kind, void *from, void *scale, void *shift, void *to, int64_t rows, int64_t n,
                          double eps) {
  if (kind == SETUP) return setup(from);
  if (rows <= 0 || n <= 0) return 0;
  shape of = {kind, {1, n}, (float)eps};
  const float *x = from;
  float *y = to;
  int64_t most = 1;
  while (2 * most <= rows && 2 * most * n <= MAX_PRIMITIVE_ELEMENTS) most *= 2;
  int status = 0, threads = dnnl.get_threads();
  dnnl.set_threads(1);
  for (int64_t done = 0; done < rows && !status;) {
    int64_t ordinary = 0, wanted = most < rows - done ? most : rows - done;
    int found = ORDINARY;
    while (ordinary < wanted && (found = kind_of(&of, x + (done + ordinary) * n)) == ORDINARY) ordinary++;
    while (ordinary && !status) {
      int64_t *count = &of.sizes[0];
      for (*count = most; *count > ordinary;) *count /= 2;
      void *arrays[] = {(float *)x + done * n, y + done * n, scale, shift};
      status = run(&of, arrays);
      done += *count;
      ordinary -= *count;
    }
    if (found != ORDINARY && !status) {
      if (kind == SOFTMAX)
        softmax_of_kind(found, x + done * n, y + done * n, n);
      else
        layer_norm_of_kind(found, x + done * n, scale, shift, y + done * n, n, eps, kind == LAYER_NORM);
      done++;
    }
  }
  dnnl.set_threads(threads);
  return failed(status);
}
