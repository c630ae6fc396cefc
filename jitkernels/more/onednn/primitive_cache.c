// Cache of oneDNN primitives, one per shape. The function `fill`, in the file behind, creates the primitive of a shape.
//
// Creating a primitive takes a millisecond, so the cache keeps them in slots and replaces the least recently used slot
// where a shape has none. A slot serves one thread at a time, since it holds the scratchpad of the primitive; another
// thread with the same shape gets a slot of its own. One lock protects the search of slots and the creation of
// primitives, never their execution. A fork waits for it, so that neither it nor a lock of oneDNN is held in the child;
// slots that other threads had acquired are free in the child.

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETUP, SOFTMAX, LAYER_NORM, LAYER_NORM_PLAIN, LSTM, GRU };
enum { SLOTS = 64, MOST = 10, MOST_MOVES = 2, MOST_AREAS = 6, SIZES = 5, OUT_OF_MEMORY = 1 };

// Values of dnnl_types.h, the same in all releases of version 3.
enum {
  CPU = 1, INFERENCE = 96, SOFTMAX_ACCURATE = 0x30000, USE_SCALE = 2, USE_SHIFT = 4,
  FLOAT32 = 3, SCRATCHPAD_OF_USER = 1, IN_ORDER = 1, SCRATCHPAD_DESCRIPTION = 136,
  SOURCE = 1, SOURCE_STATE = 2, SOURCE_CELL = 3, DESTINATION = 17, DESTINATION_STATE = 18, DESTINATION_CELL = 19,
  WEIGHTS = 33, WEIGHTS_OF_STATE = 34, BIAS = 41, SCALE = 51, SHIFT = 52, SCRATCHPAD = 80,
  ANY = 1, DESCRIPTION_OF = 255, LEFT_TO_RIGHT = 1,
};

typedef void *object;  // an opaque oneDNN handle
typedef dnnl_exec_arg_t argument;

// Set once, in the order of FUNCTIONS in primitives.py, with the types that prototypes.h declares.
static struct {
  __typeof__(omp_get_max_threads) *get_threads;
  __typeof__(omp_set_num_threads) *set_threads;
  __typeof__(dnnl_engine_create) *engine_create;
  __typeof__(dnnl_stream_create) *stream_create;
  __typeof__(dnnl_stream_destroy) *stream_destroy;
  __typeof__(dnnl_primitive_attr_create) *attr_create;
  __typeof__(dnnl_primitive_attr_destroy) *attr_destroy;
  __typeof__(dnnl_primitive_attr_set_scratchpad_mode) *attr_set_scratchpad_mode;
  __typeof__(dnnl_memory_desc_create_with_strides) *memory_desc_create_with_strides;
  __typeof__(dnnl_memory_desc_destroy) *memory_desc_destroy;
  __typeof__(dnnl_memory_desc_get_size) *memory_desc_get_size;
  __typeof__(dnnl_memory_create) *memory_create;
  __typeof__(dnnl_memory_destroy) *memory_destroy;
  __typeof__(dnnl_memory_set_data_handle) *memory_set_data_handle;
  __typeof__(dnnl_softmax_forward_primitive_desc_create) *softmax_desc_create;
  __typeof__(dnnl_layer_normalization_forward_primitive_desc_create) *layer_norm_desc_create;
  __typeof__(dnnl_memory_desc_create_with_tag) *memory_desc_create_with_tag;
  __typeof__(dnnl_lstm_forward_primitive_desc_create) *lstm_desc_create;
  __typeof__(dnnl_lbr_gru_forward_primitive_desc_create) *gru_desc_create;
  __typeof__(dnnl_reorder_primitive_desc_create) *reorder_desc_create;
  __typeof__(dnnl_primitive_desc_query_md) *desc_query;
  __typeof__(dnnl_primitive_desc_destroy) *desc_destroy;
  __typeof__(dnnl_primitive_create) *primitive_create;
  __typeof__(dnnl_primitive_destroy) *primitive_destroy;
  __typeof__(dnnl_primitive_execute) *primitive_execute;
} dnnl;

typedef struct { int64_t kind, sizes[SIZES]; float eps; } shape;

typedef struct {
  shape of;
  uint64_t used;  // the call of the last use; 0 is never
  int taken;
  object stream, primitive;
  void *areas[MOST_AREAS];  // owned by the slot; the first one is the scratchpad of the primitive
  int count;
  argument arguments[MOST];  // the scratchpad last, if there is one
  int moves;
  struct { object primitive, from; argument arguments[2]; } moved[MOST_MOVES];  // arguments that are reordered before
} slot;

static int fill(slot *new, const shape *of);

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
  return a->kind == b->kind && !memcmp(a->sizes, b->sizes, sizeof a->sizes) && !memcmp(&a->eps, &b->eps, sizeof a->eps);
}

static void unmake(slot *old) {
  for (int i = 0; i < old->count; i++) dnnl.memory_destroy(old->arguments[i].memory);
  for (int i = 0; i < old->moves; i++) {
    if (old->moved[i].from) dnnl.memory_destroy(old->moved[i].from);
    if (old->moved[i].primitive) dnnl.primitive_destroy(old->moved[i].primitive);
  }
  if (old->primitive) dnnl.primitive_destroy(old->primitive);
  if (old->stream) dnnl.stream_destroy(old->stream);
  for (int i = 0; i < MOST_AREAS; i++) free(old->areas[i]);
  memset(old, 0, sizeof *old);
}

static int add_argument(slot *new, int place, object description, void *data) {
  argument *added = &new->arguments[new->count];
  added->arg = place;
  int status = dnnl.memory_create(&added->memory, description, engine, data);
  if (!status) new->count++;
  return status;
}

// Allocate memory owned by the slot: 0, or oneDNN's out-of-memory status.
static int area(void **found, size_t size) {
  *found = aligned_alloc(64, (size + 64) / 64 * 64);
  return *found ? 0 : OUT_OF_MEMORY;
}

// Create the primitive of a description, its stream and its scratchpad.
static int add_primitive(slot *new, object described) {
  int status = dnnl.primitive_create(&new->primitive, described);
  return status ? status : dnnl.stream_create(&new->stream, engine, IN_ORDER);
}

static int add_scratchpad(slot *new, object described) {
  object needed = dnnl.desc_query(described, SCRATCHPAD_DESCRIPTION, 0);
  size_t size = needed ? dnnl.memory_desc_get_size(needed) : 0;
  if (!size) return 0;
  int status = area(&new->areas[0], size);
  return status ? status : add_argument(new, SCRATCHPAD, needed, new->areas[0]);
}

static int make(slot *new, const shape *of) {
  memset(new, 0, sizeof *new);
  new->of = *of;
  int status = fill(new, of);
  if (status) unmake(new);
  return status;
}

// Return a slot for a shape, or `spare` where other threads have acquired all.
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

// Execute the primitive of a slot; `given` arrays become its first arguments, those to be reordered go to `moved`.
static int run_taken(slot *own, void *const *arrays, int given, void *const *moved) {
  int status = 0;
  for (int i = 0; i < given && !status; i++)
    status = dnnl.memory_set_data_handle(own->arguments[i].memory, arrays[i]);
  for (int i = 0; i < own->moves && !status; i++) {
    status = dnnl.memory_set_data_handle(own->moved[i].from, moved[i]);
    if (!status) status = dnnl.primitive_execute(own->moved[i].primitive, own->stream, 2, own->moved[i].arguments);
  }
  return status ? status : dnnl.primitive_execute(own->primitive, own->stream, own->count, own->arguments);
}
