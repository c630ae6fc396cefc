// Softmax and layer normalisation by primitives of oneDNN, each made for one shape and kept.
//
// A primitive takes a millisecond to make, so that they are kept in slots, of which the one that was used longest ago
// is made anew where a shape has none. A slot serves one thread at a time, since it holds the memory that the
// primitive works in; another thread that wants the same shape gets a slot of its own. One lock is held while slots are
// looked through and while primitives are made, never while one runs. A fork waits for it, so that the child finds
// neither it nor a lock of oneDNN's taken; slots that other threads had taken are free in the child.

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETUP, SOFTMAX, LAYER_NORM, LAYER_NORM_PLAIN };
enum { SLOTS = 64, MOST = 6, OUT_OF_MEMORY = 1 };

// Values of dnnl_types.h, the same in all releases of version 3.
enum {
  CPU = 1, INFERENCE = 96, SOFTMAX_ACCURATE = 0x30000, USE_SCALE = 2, USE_SHIFT = 4,
  FLOAT32 = 3, SCRATCHPAD_OF_USER = 1, IN_ORDER = 1, SCRATCHPAD_DESCRIPTION = 136,
  SOURCE = 1, DESTINATION = 17, SCALE = 51, SHIFT = 52, SCRATCHPAD = 80,
};

typedef void *object;  // of oneDNN's
typedef struct { int place; object memory; } argument;

// Given once, in the order of FUNCTIONS in primitives.py.
static struct {
  int (*get_threads)(void);
  void (*set_threads)(int);
  int (*engine_create)(object *, int, size_t);
  int (*stream_create)(object *, object, unsigned);
  int (*stream_destroy)(object);
  int (*attr_create)(object *);
  int (*attr_destroy)(object);
  int (*attr_set_scratchpad_mode)(object, int);
  int (*memory_desc_create_with_strides)(object *, int, const int64_t *, int, const int64_t *);
  int (*memory_desc_destroy)(object);
  size_t (*memory_desc_get_size)(object);
  int (*memory_create)(object *, object, object, void *);
  int (*memory_destroy)(object);
  int (*memory_set_data_handle)(object, void *);
  int (*softmax_desc_create)(object *, object, int, int, object, object, int, object);
  int (*layer_norm_desc_create)(object *, object, int, object, object, object, float, unsigned, object);
  object (*desc_query)(object, int, int);
  int (*desc_destroy)(object);
  int (*primitive_create)(object *, object);
  int (*primitive_destroy)(object);
  int (*primitive_execute)(object, object, int, const argument *);
} dnnl;

typedef struct { int64_t kind, rows, n; float eps; } shape;

typedef struct {
  shape of;
  uint64_t used;  // when, in calls; 0 is never
  int taken;
  object stream, primitive;
  void *scratchpad;
  int count;
  argument arguments[MOST];
} slot;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object engine;
static slot slots[SLOTS];
static uint64_t calls;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void in_parent(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
  for (int i = 0; i < SLOTS; i++) slots[i].taken = 0;
  pthread_mutex_unlock(&lock);
}

static int64_t setup(void *const *functions) {
  int64_t status = 0;
  pthread_mutex_lock(&lock);
  if (!engine) {
    memcpy(&dnnl, functions, sizeof dnnl);
    status = dnnl.engine_create(&engine, CPU, 0);
    if (!status) status = pthread_atfork(before_fork, in_parent, in_child) ? OUT_OF_MEMORY : 0;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static int same(const shape *a, const shape *b) {
  return a->kind == b->kind && a->rows == b->rows && a->n == b->n &&
         !memcmp(&a->eps, &b->eps, sizeof a->eps);
}

static void unmake(slot *old) {
  for (int i = 0; i < old->count; i++) dnnl.memory_destroy(old->arguments[i].memory);
  if (old->primitive) dnnl.primitive_destroy(old->primitive);
  if (old->stream) dnnl.stream_destroy(old->stream);
  free(old->scratchpad);
  memset(old, 0, sizeof *old);
}

static int add_argument(slot *new, int place, object description, void *data) {
  argument *added = &new->arguments[new->count];
  added->place = place;
  int status = dnnl.memory_create(&added->memory, description, engine, data);
  if (!status) new->count++;
  return status;
}

// What a shape's primitive and its arguments are made of; all of it is destroyed by the caller.
typedef struct { object attributes, data, vector, described; } parts;

static int describe(const shape *of, parts *p) {
  int64_t sizes[] = {of->rows, of->n}, strides[] = {of->n, 1};
  int status;
  if ((status = dnnl.attr_create(&p->attributes))) return status;
  if ((status = dnnl.attr_set_scratchpad_mode(p->attributes, SCRATCHPAD_OF_USER))) return status;
  if ((status = dnnl.memory_desc_create_with_strides(&p->data, 2, sizes, FLOAT32, strides))) return status;
  if (of->kind == SOFTMAX)
    return dnnl.softmax_desc_create(
        &p->described, engine, INFERENCE, SOFTMAX_ACCURATE, p->data, p->data, 1, p->attributes);
  if ((status = dnnl.memory_desc_create_with_strides(&p->vector, 1, &of->n, FLOAT32, &strides[1]))) return status;
  unsigned flags = of->kind == LAYER_NORM ? USE_SCALE | USE_SHIFT : 0;
  return dnnl.layer_norm_desc_create(
      &p->described, engine, INFERENCE, p->data, p->data, NULL, of->eps, flags, p->attributes);
}

static int make_of(slot *new, const parts *p) {
  int status;
  if ((status = dnnl.primitive_create(&new->primitive, p->described))) return status;
  if ((status = dnnl.stream_create(&new->stream, engine, IN_ORDER))) return status;
  object needed = dnnl.desc_query(p->described, SCRATCHPAD_DESCRIPTION, 0);
  size_t size = needed ? dnnl.memory_desc_get_size(needed) : 0;
  if (size) {
    new->scratchpad = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!new->scratchpad) return OUT_OF_MEMORY;
  }
  if ((status = add_argument(new, SOURCE, p->data, NULL))) return status;
  if ((status = add_argument(new, DESTINATION, p->data, NULL))) return status;
  if (new->of.kind == LAYER_NORM) {
    if ((status = add_argument(new, SCALE, p->vector, NULL))) return status;
    if ((status = add_argument(new, SHIFT, p->vector, NULL))) return status;
  }
  return size ? add_argument(new, SCRATCHPAD, needed, new->scratchpad) : 0;
}

static int make(slot *new, const shape *of) {
  parts p = {0};
  memset(new, 0, sizeof *new);
  new->of = *of;
  int status = describe(of, &p);
  if (!status) status = make_of(new, &p);
  if (p.described) dnnl.desc_destroy(p.described);
  if (p.vector) dnnl.memory_desc_destroy(p.vector);
  if (p.data) dnnl.memory_desc_destroy(p.data);
  if (p.attributes) dnnl.attr_destroy(p.attributes);
  if (status) unmake(new);
  return status;
}

// A slot for a shape, or `spare` where others have taken all.
static int take(slot **found, slot *spare, const shape *of) {
  slot *oldest = NULL;
  int status = 0;
  pthread_mutex_lock(&lock);
  *found = NULL;
  for (slot *each = slots; each < slots + SLOTS; each++) {
    if (each->taken) continue;
    if (each->used && same(&each->of, of)) {
      *found = each;
      break;
    }
    if (!oldest || each->used < oldest->used) oldest = each;
  }
  if (!*found) {
    *found = oldest ? oldest : spare;
    if (oldest) unmake(oldest);
    status = make(*found, of);
  }
  if (!status) {
    (*found)->used = ++calls;
    (*found)->taken = 1;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

static void release(slot *used, slot *spare) {
  pthread_mutex_lock(&lock);
  used->taken = 0;
  if (used == spare) unmake(spare);
  pthread_mutex_unlock(&lock);
}

static int64_t failed(int status) {
  return status == 0 ? 0 : status == OUT_OF_MEMORY ? NO_MEMORY : UNKNOWN - status;
}

static int run(const shape *of, void *const *arrays) {
  slot *own, spare;
  int status = take(&own, &spare, of);
  if (status) return status;
  int arrays_given = own->count - (own->scratchpad != NULL);
  for (int i = 0; i < arrays_given && !status; i++)
    status = dnnl.memory_set_data_handle(own->arguments[i].memory, arrays[i]);
  if (!status) status = dnnl.primitive_execute(own->primitive, own->stream, own->count, own->arguments);
  release(own, &spare);
  return status;
}

// What a row is to be where the primitive is not to have it.
enum { ORDINARY, UNDEFINED, CONSTANT, FINE };

// Bits of a float as an integer of the same order: NaN are beyond the infinities.
static int32_t ordered(const float *x) {
  int32_t bits;
  memcpy(&bits, x, sizeof bits);
  return bits ^ (bits >> 31 & 0x7fffffff);
}

// Softmax of a row that has a NaN or an infinity for its maximum is NaN, where primitives make numbers of it; and they
// make 0 of results that are subnormal.
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

// The mean of equal numbers is that number, which the primitive, with its product by 1 / n, may miss by a unit; and
// squares of tiny numbers must not become 0 where there is no eps, nor those of large ones infinite.
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
  return of->kind == SOFTMAX ? kind_for_softmax(x, of->n) : kind_for_layer_norm(x, of->n, of->eps);
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

// Rows are cut into powers of two, the largest of which have no more than CHUNK elements: so that a new number of rows
// asks for no new primitives.
static int64_t primitives(int64_t kind, void *from, void *scale, void *shift, void *to, int64_t rows, int64_t n,
                          double eps) {
  if (kind == SETUP) return setup(from);
  if (rows <= 0 || n <= 0) return 0;
  shape of = {kind, 1, n, (float)eps};
  const float *x = from;
  float *y = to;
  int64_t most = 1;
  while (2 * most <= rows && 2 * most * n <= CHUNK) most *= 2;
  int status = 0, threads = dnnl.get_threads();
  dnnl.set_threads(1);
  for (int64_t done = 0; done < rows && !status;) {
    int64_t ordinary = 0, wanted = most < rows - done ? most : rows - done;
    int found = ORDINARY;
    while (ordinary < wanted && (found = kind_of(&of, x + (done + ordinary) * n)) == ORDINARY) ordinary++;
    while (ordinary && !status) {
      for (of.rows = most; of.rows > ordinary;) of.rows /= 2;
      void *arrays[] = {(float *)x + done * n, y + done * n, scale, shift};
      status = run(&of, arrays);
      done += of.rows;
      ordinary -= of.rows;
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
