// Middleware packages that publish no types.
declare module "compression";
declare module "cookie-parser";
declare module "cookie-session";
declare module "express-session";
declare module "koa-bodyparser";
declare module "koa-compress";
declare module "koa-session";
declare module "koa-static";
declare module "method-override";
declare module "morgan";
declare module "multer";
declare module "passport";
declare module "serve-static";
