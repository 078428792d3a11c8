// One pass over columns of X on a device: C = G'X + v, the descent of H from P(H + b (H - H before)),
// which is kept where H before was, then [X; H] H'.
//
// Compiled when first needed, for one size and one set; what goes before it says which:
//   T             float or double, the type of X and H
//   M, R          rows of X and of H
//   KIND, FAST    the set (as in kernels/descent.py), and whether steps are accelerated
//   BY_COLUMN     whether columns of X are contiguous, else rows are
//   WIDE          bytes that X can be read in: 16, 8 or 4
//   TN            columns of a tile, a multiple of 32
//   TY, RT, CT    threads that share a column of the descent, rows and columns of each thread
//   MT            pairs of bands of 8 rows of [X; H] for which a warp adds up
//   RESIDENT      blocks that a multiprocessor is to hold of `sweep` or `descend`

typedef long long Index;

constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr int VEC = 16 / sizeof(T);
constexpr int RP = TY == 1 ? (R + VEC - 1) / VEC * VEC : TY * RT;  // a row of A or G in memory
constexpr int WC = 32 / TY * CT;                                   // columns of a warp in the descent
constexpr int BANDS_H = (R + 7) / 8;                               // bands of 8 rows
enum { ENTRIES, SIMPLEX, CAPPED };  // lower <= entries <= upper, or columns that are proportions

struct alignas(16) Vec { T v[VEC]; };

constexpr int LIMITS = 8;  // lower, upper, tol^2, b and v, and room that keeps G aligned

// What the small side sends: A (R x RP), step (RP), the limits, G (rows of RP).
struct Small {
  const T *A, *step, *limits, *G;
  __device__ Small(const T* from)
      : A(from), step(from + R * RP), limits(from + R * RP + RP), G(from + R * RP + RP + LIMITS) {}
};
constexpr int SENT = R * RP + RP + LIMITS;  // without G

// --- tiles: TN columns of a matrix in shared memory -----------------------------------------------

template <int ROWS, bool COLUMNS>
struct Tile {
  // Steps of rows or columns: an odd number of 16 bytes, so that neighbors are in other banks.
  static constexpr int LD = COLUMNS ? ((ROWS + VEC - 1) / VEC | 1) * VEC : TN + VEC;
  static constexpr int SIZE = COLUMNS ? TN * LD : ROWS * LD;
  T* at;

  __device__ T& operator()(int i, int j) const { return COLUMNS ? at[j * LD + i] : at[i * LD + j]; }

  __device__ void clear() const {
    for (int e = threadIdx.x; e < SIZE; e += THREADS) at[e] = 0;
  }

  __device__ Tile below(int top) const { return Tile{at + (COLUMNS ? top : top * LD)}; }

  // Begin to copy `rows` rows and the columns from `left` on; zeros beyond the n-th column.
  template <int BYTES>
  __device__ void fetch(const T* X, Index ld, int rows, Index left, Index n) const {
    constexpr int STEP = BYTES / sizeof(T), ACROSS = COLUMNS ? 32 : TN / STEP;
    const int first = threadIdx.x % ACROSS * STEP, most = (int)min(n - left, (Index)TN);
    const int lines = COLUMNS ? most : rows, length = COLUMNS ? rows : most;
    const T* from = COLUMNS ? X + left * ld : X + left;
#pragma unroll 4
    for (int line = threadIdx.x / ACROSS; line < (COLUMNS ? TN : rows); line += THREADS / ACROSS)
      for (int k = first; k < (COLUMNS ? rows : TN); k += ACROSS * STEP) {
        const int count = line < lines ? max(0, min(STEP, length - k)) : 0;
        copy<BYTES>(at + line * LD + k, count ? from + line * ld + k : X, count * sizeof(T));
      }
  }

  template <int BYTES>
  static __device__ __forceinline__ void copy(T* to, const T* from, int bytes) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(bytes));
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(BYTES), "r"(bytes));
  }
};

__device__ __forceinline__ void arrived() {
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
}

// --- the descent of some columns, as in kernels/descent.py ---------------------------------------

// Threads ty = 0, ..., TY - 1, neighbors in a warp, share CT columns, RT rows each.
struct Mine {
  int ty;
  __device__ int row(int a) const { return TY == 1 ? a : (a / VEC * TY + ty) * VEC + a % VEC; }
  __device__ bool has(int a) const { return TY == 1 || row(a) < R; }
};

template <typename V>
__device__ __forceinline__ V over_rows(V v) {
  for (int other = 1; other < TY; other *= 2) v += __shfl_xor_sync(~0u, v, other);
  return v;
}

// A v - C; where threads share columns they show each other theirs in `shown`, R x WC for each warp.
__device__ __forceinline__ void slope_at(
    const T (&v)[RT][CT], const T* A, const T (&C)[RT][CT], T (&out)[RT][CT], Mine mine, T* shown) {
#pragma unroll
  for (int a = 0; a < RT; a++)
#pragma unroll
    for (int c = 0; c < CT; c++) out[a][c] = -C[a][c];
  const int at = threadIdx.x % 32 / TY * CT;
  if constexpr (TY > 1) {
    __syncwarp();
    for (int a = 0; a < RT; a++)
      for (int c = 0; c < CT; c++)
        if (mine.has(a)) shown[mine.row(a) * WC + at + c] = v[a][c];
    __syncwarp();
  }
#pragma unroll(TY == 1 ? R : 4)
  for (int k = 0; k < R; k++) {
    T x[CT];
    for (int c = 0; c < CT; c++) {
      if constexpr (TY > 1) x[c] = shown[k * WC + at + c];
      else x[c] = v[k][c];
    }
#pragma unroll
    for (int a = 0; a < RT; a += VEC) {
      const Vec row = *reinterpret_cast<const Vec*>(A + k * RP + mine.row(a));
#pragma unroll
      for (int b = 0; b < VEC; b++)
        if (a + b < RT)
          for (int c = 0; c < CT; c++) out[a + b][c] += row.v[b] * x[c];
    }
  }
}

// max(v - t, 0) with sum 1 (or at most 1), t by Michelot's shrinking active set.
__device__ __forceinline__ void to_simplex(T (&v)[RT][CT], int c, Mine mine) {
  T top = -__int_as_float(0x7f800000), total = 0;
#pragma unroll
  for (int a = 0; a < RT; a++)
    if (mine.has(a)) {
      top = v[a][c] > top ? v[a][c] : top;
      total += v[a][c] > 0 ? v[a][c] : 0;
    }
  for (int other = 1; other < TY; other *= 2) {
    const T theirs = __shfl_xor_sync(~0u, top, other);
    top = theirs > top ? theirs : top;
  }
  total = over_rows(total);
  // a column inside the capped simplex is only clipped: it has neither shift nor t
  int count = KIND == CAPPED && total <= 1 ? 0 : R;
  top = count == 0 ? 0 : top;
  total = 0;
#pragma unroll
  for (int a = 0; a < RT; a++) {
    v[a][c] -= top;
    total += mine.has(a) ? v[a][c] : 0;
  }
  T t = (over_rows(total) - 1) / R;
  t = count == 0 ? 0 : t;
  for (bool shrinking = true; shrinking;) {
    T sum = 0;
    int remaining = 0;
#pragma unroll
    for (int a = 0; a < RT; a++) {
      const bool above = mine.has(a) && v[a][c] > t;
      sum += above ? v[a][c] : 0;
      remaining += above;
    }
    sum = over_rows(sum);
    remaining = over_rows(remaining);
    const bool smaller = 0 < remaining && remaining < count;
    t = smaller ? (sum - 1) / remaining : t;
    count = remaining > 0 && remaining < count ? remaining : count;
    shrinking = __any_sync(~0u, smaller);
  }
#pragma unroll
  for (int a = 0; a < RT; a++) v[a][c] = v[a][c] - t > 0 ? v[a][c] - t : 0;
}

__device__ __forceinline__ void project(T (&v)[RT][CT], Mine mine, const T* limits) {
#pragma unroll
  for (int c = 0; c < CT; c++) {
    if constexpr (KIND != ENTRIES) to_simplex(v, c, mine);
#pragma unroll
    for (int a = 0; a < RT; a++) {
      if constexpr (KIND == ENTRIES) {
        v[a][c] = v[a][c] > limits[0] ? v[a][c] : limits[0];
        v[a][c] = v[a][c] < limits[1] ? v[a][c] : limits[1];
      }
      if (!mine.has(a)) v[a][c] = 0;
    }
  }
}

// m -> P(m + b (m - before)).
__device__ __forceinline__ void step_ahead(T (&m)[RT][CT], const T (&before)[RT][CT], Small small, Mine mine) {
  const T b = small.limits[3];
  if (b == 0) return;
#pragma unroll
  for (int a = 0; a < RT; a++)
#pragma unroll
    for (int c = 0; c < CT; c++) m[a][c] += b * (m[a][c] - before[a][c]);
  project(m, mine, small.limits);
}

// m -> argmin of 1/2 <m, A m> - <c, m> over the set. beta[k]: extrapolation k steps after a restart.
__device__ __forceinline__ void descend_columns(
    Small small, const T* beta, int max_iter, const T (&C)[RT][CT], T (&m)[RT][CT], Mine mine, T* shown) {
  T slope[RT][CT], now[RT][CT], new_slope[RT][CT], first[CT];
  int since[CT];
  bool moving[CT];
  slope_at(m, small.A, C, slope, mine, shown);
#pragma unroll
  for (int c = 0; c < CT; c++) {
    since[c] = 0;
    moving[c] = true;
#pragma unroll
    for (int a = 0; a < RT; a++) now[a][c] = m[a][c] - small.step[mine.row(a)] * slope[a][c];
  }
  for (int it = 0; it < max_iter; it++) {
    project(now, mine, small.limits);
    slope_at(now, small.A, C, new_slope, mine, shown);
    bool any = false;
#pragma unroll
    for (int c = 0; c < CT; c++) {
      T change = 0, length = 0;  // twice the function's change
#pragma unroll
      for (int a = 0; a < RT; a++) {
        const T d = now[a][c] - m[a][c];
        change += (slope[a][c] + new_slope[a][c]) * d;
        length += d * d;
      }
      change = over_rows(change);
      length = over_rows(length);
      if (it == 0) first[c] = length;
      const bool better = moving[c] && change <= 0;
      const bool onward = better && length > small.limits[2] * first[c];
      moving[c] = moving[c] && (onward || since[c] > 0);  // only an unextrapolated step says whether m has converged
      any = any || moving[c];
      const T b = onward && FAST ? beta[since[c]] : T(0);
      since[c] = onward && FAST ? since[c] + 1 : 0;
#pragma unroll
      for (int a = 0; a < RT; a++) {
        const T d = now[a][c] - m[a][c], turn = new_slope[a][c] - slope[a][c];
        m[a][c] = better ? now[a][c] : m[a][c];
        slope[a][c] = better ? new_slope[a][c] : slope[a][c];
        now[a][c] = m[a][c] + b * d - small.step[mine.row(a)] * (slope[a][c] + b * turn);
      }
    }
    if (!__any_sync(~0u, any)) break;
  }
}

// --- sums over columns ----------------------------------------------------------------------------

// sum(p) += Y_p Z' for two bands Y_p of 8 rows and one Z, 16 columns each, in double.
__device__ __forceinline__ void multiply_add(double (&sum)[2][2], const double (&y)[2][4], const double (&z)[4]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(sum[0][0]), "+d"(sum[0][1]), "+d"(sum[1][0]), "+d"(sum[1][1])
      : "d"(y[0][0]), "d"(y[1][0]), "d"(y[0][1]), "d"(y[1][1]), "d"(y[0][2]), "d"(y[1][2]),
        "d"(y[0][3]), "d"(y[1][3]), "d"(z[0]), "d"(z[1]), "d"(z[2]), "d"(z[3]));
#else
  for (int p = 0; p < 2; p++)
    for (int q = 0; q < 4; q++)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
          : "+d"(sum[p][0]), "+d"(sum[p][1]) : "d"(y[p][q]), "d"(z[q]));
#endif
}

// sum(t) += Y(band, :) H' for every WARPS-th pair of bands of 8 rows of Y from this warp's on.
template <typename Y, typename Z>
__device__ __forceinline__ void add_products(Y y, int bands, Z h, double (&sum)[MT][BANDS_H][2][2]) {
  const int first = threadIdx.x / 32 * 2, i = threadIdx.x % 32 / 4;
  for (int j = threadIdx.x % 4; j < TN; j += 16) {
    double b[BANDS_H][4];
#pragma unroll
    for (int c = 0; c < BANDS_H; c++)
#pragma unroll
      for (int q = 0; q < 4; q++) b[c][q] = h(8 * c + i, j + 4 * q);
#pragma unroll
    for (int t = 0; t < MT; t++) {
      const int band = first + 2 * WARPS * t;
      if (band < bands) {  // the same for all of a warp
        double a[2][4];
#pragma unroll
        for (int p = 0; p < 2; p++)
#pragma unroll
          for (int q = 0; q < 4; q++) a[p][q] = y(8 * min(band + p, bands - 1) + i, j + 4 * q);
#pragma unroll
        for (int c = 0; c < BANDS_H; c++) multiply_add(sum[t][c], a, b[c]);
      }
    }
  }
}

// Write a block's own (M + R) x R sums; row(band, i) is where a band's row i belongs, or negative.
template <typename Row>
__device__ __forceinline__ void keep(const double (&sum)[MT][BANDS_H][2][2], Row row, double* partial, bool again) {
  const int first = threadIdx.x / 32 * 2, lane = threadIdx.x % 32;
#pragma unroll
  for (int t = 0; t < MT; t++)
#pragma unroll
    for (int p = 0; p < 2; p++) {
      const int i = row(first + 2 * WARPS * t + p, lane / 4);
#pragma unroll
      for (int c = 0; c < BANDS_H; c++)
#pragma unroll
        for (int b = 0; b < 2; b++) {
          const int k = 8 * c + lane % 4 * 2 + b;
          double* to = partial + ((Index)blockIdx.x * (M + R) + i) * R + k;
          if (i >= 0 && k < R) *to = (again ? *to : 0) + sum[t][c][p][b];
        }
    }
}

// --- kernels --------------------------------------------------------------------------------------

#ifdef FUSED
// All of a pass, X read once: a tile stays in shared memory between its products. RT = R.
extern "C" __global__ __launch_bounds__(THREADS, RESIDENT) void sweep(
    const T* X, Index ldx, const T* from, T* H, Index ldh, Index n, const T* sent, const T* beta,
    double* partial, int max_iter, int again) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int BANDS = (M + 7) / 8, GROUPS = TN / 32;
  constexpr int PART = (M + WARPS * VEC - 1) / (WARPS * VEC) * VEC;  // rows of X that a warp adds to G'X
  const Tile<8 * (BANDS + BANDS_H), BY_COLUMN> x{reinterpret_cast<T*>(memory)};  // [X; H]
  const auto y = x.below(8 * BANDS);
  T* own = x.at + x.SIZE;                     // what was sent
  T* parts = own + SENT + WARPS * PART * RP;  // (WARPS - 1) x R x TN: other warps' parts of G'X
  for (int e = threadIdx.x; e < SENT + WARPS * PART * RP; e += THREADS) own[e] = sent[e];
  x.clear();
  __syncthreads();
  const Small small(own);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Mine alone{0};
  double sum[MT][BANDS_H][2][2] = {};
  int turn = 0;  // warps descend in turn, so that all parts of the multiprocessor have as much to do
  for (Index left = (Index)blockIdx.x * TN; left < n; left += (Index)gridDim.x * TN, turn += GROUPS) {
    x.template fetch<WIDE>(X, ldx, M, left, n);
    const int group = (unsigned)(warp - turn) % WARPS, mine = group * 32 + lane;
    const bool there = group < GROUPS && left + mine < n;
    T h[R][1], before[R][1], c[R][1];
#pragma unroll
    for (int k = 0; k < R; k++) {
      h[k][0] = there ? from[k * ldh + left + mine] : T(0);
      before[k][0] = there ? H[k * ldh + left + mine] : T(0);
    }
    arrived();
    __syncthreads();
    T part[GROUPS][R] = {};  // of G'X: each warp takes some rows, each thread a column of each group
#pragma unroll 2
    for (int i = warp * PART; i < (warp + 1) * PART; i += VEC) {
      Vec some[GROUPS];
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        if constexpr (BY_COLUMN)
          some[g] = *reinterpret_cast<const Vec*>(&x(i, lane + 32 * g));
        else
#pragma unroll
          for (int b = 0; b < VEC; b++) some[g].v[b] = x(i + b, lane + 32 * g);
      }
#pragma unroll
      for (int b = 0; b < VEC; b++)
#pragma unroll
        for (int k = 0; k < RP; k += VEC) {
          const Vec row = *reinterpret_cast<const Vec*>(small.G + (i + b) * RP + k);
#pragma unroll
          for (int v = 0; v < VEC; v++)
            if (k + v < R)
#pragma unroll
              for (int g = 0; g < GROUPS; g++) part[g][k + v] += row.v[v] * some[g].v[b];
        }
    }
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
      if (g != group)
#pragma unroll
        for (int k = 0; k < R; k++)
          parts[((unsigned)(group - g - 1) % WARPS * R + k) * TN + lane + 32 * g] = part[g][k];
    __syncthreads();
    if (group < GROUPS) {
#pragma unroll
      for (int k = 0; k < R; k++) {
        c[k][0] = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) c[k][0] = g == group ? part[g][k] : c[k][0];
        for (int w = 0; w < WARPS - 1; w++) c[k][0] += parts[(w * R + k) * TN + mine];
        c[k][0] += small.limits[4];
      }
      step_ahead(h, before, small, alone);
      descend_columns(small, beta, max_iter, c, h, alone, nullptr);
#pragma unroll
      for (int k = 0; k < R; k++) {
        y(k, mine) = there ? h[k][0] : T(0);
        if (there) H[k * ldh + left + mine] = h[k][0];
      }
    }
    __syncthreads();
    add_products(x, BANDS + BANDS_H, y, sum);
    __syncthreads();
  }
  const auto row = [](int band, int i) {
    const int at = 8 * band + i, below = at - 8 * BANDS;
    return at < M ? at : below >= 0 && below < R ? M + below : -1;
  };
  keep(sum, row, partial, again);
}
#else
// The descent alone, from C = G'X and v, for ranks too large for one thread's registers.
extern "C" __global__ __launch_bounds__(THREADS, RESIDENT) void descend(
    const T* C, Index ldc, const T* from, T* H, Index ldh, Index n, const T* sent, const T* beta,
    int max_iter) {
  extern __shared__ __align__(16) unsigned char memory[];
  T* own = reinterpret_cast<T*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  T* shown = own + SENT + warp * R * WC;
  for (int e = threadIdx.x; e < SENT; e += THREADS) own[e] = sent[e];
  __syncthreads();
  const Mine mine{lane % TY};
  for (Index left = ((Index)blockIdx.x * WARPS + warp) * WC; left < n; left += (Index)gridDim.x * WARPS * WC) {
    T h[RT][CT], before[RT][CT], c[RT][CT];
    const Index first = left + lane / TY * CT;
#pragma unroll
    for (int a = 0; a < RT; a++)
#pragma unroll
      for (int b = 0; b < CT; b++) {
        const bool there = mine.has(a) && first + b < n;
        h[a][b] = there ? from[mine.row(a) * ldh + first + b] : T(0);
        before[a][b] = there ? H[mine.row(a) * ldh + first + b] : T(0);
        c[a][b] = there ? C[mine.row(a) * ldc + first + b] + Small(own).limits[4] : T(0);
      }
    step_ahead(h, before, Small(own), mine);
    descend_columns(Small(own), beta, max_iter, c, h, mine, shown);
#pragma unroll
    for (int a = 0; a < RT; a++)
#pragma unroll
      for (int b = 0; b < CT; b++)
        if (mine.has(a) && first + b < n) H[mine.row(a) * ldh + first + b] = h[a][b];
  }
}

// X H' for WARPS * MT pairs of bands of its rows, or as many of H H' (the last blockIdx.y).
extern "C" __global__ __launch_bounds__(THREADS, 2) void sums(
    const T* X, Index ldx, const T* H, Index ldh, Index n, double* partial, int again) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int ROWS = 16 * WARPS * MT, OF_X = (M + ROWS - 1) / ROWS;
  const Tile<8 * BANDS_H, false> h{reinterpret_cast<T*>(memory)};
  const Tile<ROWS, BY_COLUMN> x{h.at + h.SIZE};
  const bool of_X = blockIdx.y < OF_X;
  const int top = (of_X ? blockIdx.y : blockIdx.y - OF_X) * ROWS;
  const int rows = min(ROWS, M - top);
  h.clear();
  x.clear();
  __syncthreads();
  double sum[MT][BANDS_H][2][2] = {};
  for (Index left = (Index)blockIdx.x * TN; left < n; left += (Index)gridDim.x * TN) {
    h.template fetch<sizeof(T)>(H, ldh, R, left, n);
    if (of_X) x.template fetch<WIDE>(BY_COLUMN ? X + top : X + top * ldx, ldx, rows, left, n);
    arrived();
    __syncthreads();
    if (of_X) add_products(x, (rows + 7) / 8, h, sum);
    else add_products(h.below(top), BANDS_H - top / 8, h, sum);
    __syncthreads();
  }
  const auto row = [=](int band, int i) {
    const int at = top + 8 * band + i;
    return of_X ? (at < M ? at : -1) : at < R ? M + at : -1;
  };
  keep(sum, row, partial, again);
}
#endif

// Sums of all blocks, entry by entry, always in the same order.
extern "C" __global__ __launch_bounds__(256) void reduce(const double* partial, int blocks, double* out) {
  __shared__ double part[8][32];
  constexpr int ALL = (M + R) * R;
  const int e = blockIdx.x * 32 + threadIdx.x;
  double sum = 0;
  if (e < ALL)
#pragma unroll 8
    for (int b = threadIdx.y; b < blocks; b += 8) sum += partial[(Index)b * ALL + e];
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && e < ALL) {
    for (int b = 1; b < 8; b++) sum += part[b][threadIdx.x];
    out[e] = sum;
  }
}
