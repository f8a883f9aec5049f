/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin whose init aborts or reads where nothing is: what the command says when a plugin takes
 * the process down.
 */
#include <stdlib.h>
#include <trellis/abi/plugin.h>

TRL_PLUGIN_NOTE("crash-plugin", "1.0.0");

static trl_status init(trl_call* call, void** self) {
  (void)call;
  (void)self;
  const char* how = getenv("CRASH_PLUGIN");
  if (how != NULL && strcmp(how, "abort") == 0) abort();
  void* volatile nowhere = (void*)8;
  if (how != NULL && strcmp(how, "read") == 0) *self = *(void**)nowhere;
  return TRL_OK;
}

TRL_EXPORT trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out);
trl_status trl_plugin_entry_v1(trl_call* call, trl_plugin* out) {
  static const trl_plugin table = {.struct_size = sizeof(trl_plugin),
                                   .abi_major = TRL_ABI_MAJOR,
                                   .abi_minor = TRL_ABI_MINOR,
                                   .min_host_minor = TRL_TARGET_MINOR,
                                   .id = TRL_STR("crash-plugin"),
                                   .version = TRL_STR("1.0.0"),
                                   .init = init};
  if (call->host->abi_major != TRL_ABI_MAJOR || call->host->abi_minor + 1 < TRL_TARGET_MINOR + 1)
    return call->host->fail(call, TRL_E_ABI, (trl_str)TRL_STR("needs a newer host"));
  TRL_FILL(out, &table);
  return TRL_OK;
}
