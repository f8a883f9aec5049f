/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest plugin: an id and a version, nothing provided. */
#include <trellis/abi/plugin.h>

TRL_PLUGIN_NOTE("minimal", "1.0.0");

TRL_EXPORT trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out) {
  const trl_plugin plugin = {
      .struct_size = sizeof(plugin),
      .abi_major = TRL_ABI_MAJOR,
      .abi_minor = TRL_ABI_MINOR,
      .min_host_minor = TRL_TARGET_MINOR,
      .id = TRL_STR("minimal"),
      .version = TRL_STR("1.0.0"),
  };
  (void)call;
  TRL_FILL(out, &plugin);
  return TRL_OK;
}
