// Middleware packages that publish no types.
declare module "compression";
declare module "cookie-parser";
declare module "cookie-session";
declare module "cors";
declare module "express-session";
declare module "koa-bodyparser";
declare module "koa-compress";
declare module "koa-session";
declare module "koa-static";
declare module "method-override";
declare module "morgan";
declare module "multer";
declare module "on-headers";
declare module "passport";
declare module "serve-static";

// Older majors, used as their successors are.
declare module "express-4" {
  import express from "express";
  export = express;
}
declare module "fastify-4" {
  import Fastify from "fastify";
  export = Fastify;
}
declare module "koa-2" {
  import Koa from "koa";
  export = Koa;
}
