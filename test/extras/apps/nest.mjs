import "reflect-metadata";
import { Controller, Get, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { CacheResponse, XCacheModule } from "xcache/ecosystem/nest";
import { checkPage, works } from "./check.mjs";

let runs = 0;
class Pages {
  page() {
    return `page ${++runs}`;
  }
}
const describe = (decorate) => {
  const descriptor = Object.getOwnPropertyDescriptor(Pages.prototype, "page");
  Object.defineProperty(Pages.prototype, "page", decorate(Pages.prototype, "page", descriptor) ?? descriptor);
};
describe(CacheResponse({ ttl: 60 }));
describe(Get("page"));
Controller()(Pages);
class App {}
Module({ imports: [XCacheModule.forRoot({ cache: { kvUrl: "memory://" } })], controllers: [Pages] })(App);
const app = await NestFactory.create(App, { logger: ["error"], abortOnError: false });
await app.listen(0, "127.0.0.1");
await checkPage(app.getHttpServer().address().port, () => runs);
await app.close();
works("@nestjs/common");
