// The default theme in the colours of the logo.
import DefaultTheme from "vitepress/theme";
import "./style.css";

// biome-ignore lint/style/noDefaultExport: VitePress asks for it
export default DefaultTheme;
