// xcache with metrics turned off.
import { openXCache } from "./xcache.mjs";

export const open = (options) => openXCache(options, { enableMetrics: false });
