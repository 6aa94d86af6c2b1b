// The contract suite on a disk store, at both levels of durability.
import { describe, it } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import { backendContract, type ContractSubject } from "../../../src/testing/index.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { sharedSubject } from "../../support/subject.ts";

const freshFolder = freshFolders();
const runner = { describe, it: it.concurrent };

function diskSubject(name: string, durability: "process" | "disk"): ContractSubject {
  const directory = freshFolder();
  const client = (): DiskBackend => new DiskBackend({ directory, durability });
  return sharedSubject({ name, offers: { scan: true, push: false }, client });
}

backendContract(diskSubject("disk that survives its processes", "process"), runner);
backendContract(diskSubject("disk that survives a power cut", "disk"), runner);
