"""JAX: XLA's own table of driver entries, one compiled function."""
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax  # noqa: E402 (reads the variable at import)
import jax.numpy as jnp  # noqa: E402

print("result platform", jax.devices()[0].platform, jax.devices()[0].device_kind)
values = jnp.arange(1000, dtype=jnp.float32)
print("result sum", float(jax.jit(lambda x: (x * 2 + 1).sum())(values)).hex())
square = jnp.ones((256, 256), dtype=jnp.float32)
print("result product", float((square @ square).sum()).hex())
