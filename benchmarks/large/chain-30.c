void f(int n, float a[n], float b[n]) {
#pragma scop
for (int i = 0; i < n; i++) {
a[i] = b[i] - 0.11f * a[i];
b[i] = a[i] * 0.12f + b[i];
a[i] = b[i] - 0.13f * a[i];
b[i] = a[i] * 0.14f + b[i];
a[i] = b[i] - 0.15f * a[i];
b[i] = a[i] * 0.16f + b[i];
a[i] = b[i] - 0.17f * a[i];
b[i] = a[i] * 0.18f + b[i];
a[i] = b[i] - 0.19f * a[i];
b[i] = a[i] * 0.20f + b[i];
a[i] = b[i] - 0.21f * a[i];
b[i] = a[i] * 0.22f + b[i];
a[i] = b[i] - 0.23f * a[i];
b[i] = a[i] * 0.24f + b[i];
a[i] = b[i] - 0.25f * a[i];
b[i] = a[i] * 0.26f + b[i];
a[i] = b[i] - 0.27f * a[i];
b[i] = a[i] * 0.28f + b[i];
a[i] = b[i] - 0.29f * a[i];
b[i] = a[i] * 0.30f + b[i];
a[i] = b[i] - 0.31f * a[i];
b[i] = a[i] * 0.32f + b[i];
a[i] = b[i] - 0.33f * a[i];
b[i] = a[i] * 0.34f + b[i];
a[i] = b[i] - 0.35f * a[i];
b[i] = a[i] * 0.36f + b[i];
a[i] = b[i] - 0.37f * a[i];
b[i] = a[i] * 0.38f + b[i];
a[i] = b[i] - 0.39f * a[i];
b[i] = a[i] * 0.40f + b[i];}
#pragma endscop
}
