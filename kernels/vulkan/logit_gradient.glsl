// Returns scale (exp(logit - shift) - [at_target]): an element of the gradient of a cross-entropy, where shift is the
// logsumexp of its row.
float logit_gradient(float logit, float shift, bool at_target, float scale) {
  const float difference = logit - shift;
  const float p = isnan(difference) ? difference : exp(difference);
  return (at_target ? p - 1.0 : p) * scale;
}
