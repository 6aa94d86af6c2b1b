// What is used of Nest and RxJS. This entry point is of no use without them, so they are loaded with it.
import { requiredPackage } from "../../metrics/peer-package.ts";

const FEATURE = "xcache/ecosystem/nest";

export const nest = requiredPackage("@nestjs/common", FEATURE) as typeof import("@nestjs/common");
export const rx = requiredPackage("rxjs", FEATURE) as typeof import("rxjs");
