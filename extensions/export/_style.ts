// The look of an exported page: light and dark, wide and narrow, and on paper. No url(), nothing is fetched.
const colors = (name: "light" | "dark") =>
  name === "light"
    ? "--bg:#fbfbfa;--panel:#f1f1ee;--card:#fff;--text:#1d1f21;--soft:#64686d;--line:#dedfdc;--accent:#1f6feb;--user:#e8f0fe;--good:#116329;--good-bg:#dafbe1;--bad:#a40e26;--bad-bg:#ffebe9;--mark:#fff3c4;--kw:#8250df;--str:#0a5d3c;--num:#0550ae;--com:#6a737d;color-scheme:light"
    : "--bg:#16181b;--panel:#1d2024;--card:#22262b;--text:#e3e5e8;--soft:#9aa2ab;--line:#343a41;--accent:#6cb0ff;--user:#1d3047;--good:#7ee2a8;--good-bg:#12341f;--bad:#ff9c9c;--bad-bg:#43191c;--mark:#4b4113;--kw:#c9a4ff;--str:#8fdcab;--num:#86c1ff;--com:#8b949e;color-scheme:dark";

const depths = Array.from({ length: 8 }, (_, index) => `.row.d${index + 1}{padding-left:${(index + 1) * 0.7}rem}`).join("");

export const STYLE = `
:root{${colors("light")};--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
@media (prefers-color-scheme:dark){:root:not([data-theme="light"]){${colors("dark")}}}
:root[data-theme="dark"]{${colors("dark")}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;display:grid;grid-template-columns:minmax(15rem,22rem) minmax(0,1fr)}
button,input{font:inherit;color:inherit}
a{color:var(--accent)}
#sidebar{position:sticky;top:0;height:100vh;display:flex;flex-direction:column;background:var(--panel);border-right:1px solid var(--line)}
#sidebar .tools{padding:.75rem .75rem .5rem;border-bottom:1px solid var(--line)}
#search{width:100%;padding:.35rem .6rem;border:1px solid var(--line);border-radius:.4rem;background:var(--card)}
.filters{display:flex;flex-wrap:wrap;gap:.25rem;margin-top:.5rem}
.filters button,.actions button,#menu{border:1px solid var(--line);background:var(--card);border-radius:.4rem;padding:.1rem .5rem;font-size:.82rem;cursor:pointer}
.filters button.active{background:var(--accent);border-color:var(--accent);color:var(--bg)}
#tree{list-style:none;margin:0;padding:.4rem 0;overflow-y:auto;flex:1}
.row button{display:flex;gap:.35rem;align-items:baseline;width:100%;border:0;background:none;text-align:left;padding:.12rem .75rem;cursor:pointer;font-size:.82rem;line-height:1.45}
.row .line{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;min-width:0}
.row button::before{flex:none;width:.55rem;height:.55rem;border-radius:50%;background:var(--line);content:"";align-self:center}
.row.user button::before{background:var(--accent)}
.row.assistant button::before{background:var(--kw)}
.row.tool button::before,.row.bash button::before{background:var(--good);border-radius:.1rem}
.row.failed button::before{background:var(--bad)}
.row.summary button::before{background:var(--num);border-radius:.1rem}
.row.fork>button{border-top:1px dashed var(--line)}
.row.user .line{font-weight:600}
.row.tool .line,.row.state .line,.row.note .line{color:var(--soft)}
.live .row:not(.on) .line{opacity:.55}
.row button:hover{background:var(--line)}
.row.marked button{background:var(--mark)}
${depths}
.count{margin:0;padding:.35rem .75rem;font-size:.78rem;color:var(--soft);border-top:1px solid var(--line)}
main{padding:1.25rem clamp(.75rem,3vw,2.5rem) 4rem;max-width:62rem;min-width:0;width:100%}
h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}
.bar{display:flex;gap:.5rem;align-items:center;flex-wrap:wrap;margin-bottom:.6rem}
#menu{display:none}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem 1rem;margin:.5rem 0 1rem;font-size:.88rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
#intro{border-bottom:1px solid var(--line);padding-bottom:1rem;margin-bottom:1rem}
.entry{margin:0 0 .9rem;padding:.6rem .9rem;border:1px solid var(--line);border-radius:.6rem;background:var(--card);overflow-wrap:anywhere;min-width:0}
.entry.user{background:var(--user)}
.entry.state{border-style:dashed;padding:.25rem .9rem;font-size:.85rem}
.entry.tool,.entry.bash{border-left:3px solid var(--good)}
.entry.failed{border-left-color:var(--bad)}
.entry.summary{border-left:3px solid var(--num)}
.entry.marked{outline:2px solid var(--accent);outline-offset:1px}
.entry>header{display:flex;gap:.6rem;align-items:baseline;font-size:.8rem;color:var(--soft);margin-bottom:.2rem}
.entry>header h3{font-size:.8rem;margin:0;color:var(--text);overflow-wrap:anywhere;min-width:0}
.entry>header time{margin-left:auto;white-space:nowrap}
.anchor{text-decoration:none;color:var(--soft)}
.label{background:var(--mark);border-radius:.3rem;padding:0 .35rem;font-size:.78rem;flex:none;max-width:12rem;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.live .off{display:none}
.live:not(.all) .entry.minor{display:none}
.md>:first-child,.plain:first-child{margin-top:0}
.md>:last-child{margin-bottom:0}
.md h1{font-size:1.25rem}.md h2{font-size:1.12rem}.md h3,.md h4,.md h5,.md h6{font-size:1rem}
.md h1,.md h2,.md h3,.md h4,.md h5,.md h6{margin:1em 0 .4em;line-height:1.3}
.md p,.md ul,.md ol,.md table,.md blockquote{margin:.5em 0}
.md blockquote{border-left:3px solid var(--line);padding-left:.8rem;margin-left:0;color:var(--soft)}
.md table{border-collapse:collapse;display:block;overflow-x:auto}
.md th,.md td{border:1px solid var(--line);padding:.2rem .55rem;text-align:left}
.plain{white-space:pre-wrap;margin:.4rem 0}
code,pre{font-family:var(--mono);font-size:.86em}
pre code{font-size:inherit}
:not(pre)>code{background:var(--panel);border-radius:.25rem;padding:.08em .3em}
pre{background:var(--panel);border-radius:.45rem;padding:.6rem .8rem;overflow-x:auto;margin:.5rem 0;line-height:1.45;position:relative}
pre.code{white-space:pre}
pre.output,pre.diff{white-space:pre-wrap;max-height:36rem;overflow:auto}
pre[data-lang]::after{content:attr(data-lang);position:absolute;top:.2rem;right:.5rem;font-size:.72rem;color:var(--soft)}
.diff span{display:block;min-height:1.2em}
.diff .added{background:var(--good-bg);color:var(--good)}
.diff .removed{background:var(--bad-bg);color:var(--bad)}
.diff .place{color:var(--soft)}
details{margin:.35rem 0}
summary{cursor:pointer;color:var(--soft);font-size:.88rem;overflow-wrap:anywhere}
summary b{color:var(--text);font-family:var(--mono);font-weight:600}
.hint{color:var(--soft);font-family:var(--mono);font-size:.9em}
.thinking>.md,.thinking>.plain{border-left:3px solid var(--line);padding-left:.8rem;color:var(--soft);font-style:italic}
.usage,p.note{margin:.4rem 0 0;font-size:.78rem;color:var(--soft)}
.failure{color:var(--bad);background:var(--bad-bg);border-radius:.4rem;padding:.3rem .6rem;margin:.4rem 0}
.picture{max-width:100%;max-height:30rem;border-radius:.4rem;border:1px solid var(--line);display:block;margin:.4rem 0}
.todos{list-style:none;padding-left:.2rem;margin:.2rem 0}
.todos .completed,.todos .abandoned{color:var(--soft)}
.todos .abandoned{text-decoration:line-through}
h4{margin:.5rem 0 .1rem;font-size:.9rem}
.box{margin-right:.15rem}
.subagents h2{font-size:1.05rem;margin:1.2rem 0 .4rem}
.subagent{border-left:2px solid var(--line);padding-left:.8rem}
#end{color:var(--soft);font-size:.8rem;text-align:center}
.hljs-keyword,.hljs-built_in,.hljs-selector-tag,.hljs-literal,.hljs-section,.hljs-name,.hljs-type{color:var(--kw)}
.hljs-string,.hljs-regexp,.hljs-addition,.hljs-attribute,.hljs-meta .hljs-string{color:var(--str)}
.hljs-number,.hljs-attr,.hljs-title,.hljs-variable,.hljs-symbol,.hljs-link{color:var(--num)}
.hljs-comment,.hljs-quote,.hljs-meta,.hljs-deletion{color:var(--com)}
.hljs-emphasis{font-style:italic}.hljs-strong{font-weight:700}
#shade{display:none}
@media (max-width:52rem){
body{grid-template-columns:minmax(0,1fr)}
#sidebar{position:fixed;z-index:2;left:0;width:min(22rem,86vw);transform:translateX(-105%);visibility:hidden}
.menu #sidebar{transform:none;visibility:visible}
.menu #shade{display:block;position:fixed;inset:0;z-index:1;background:rgb(0 0 0/.45)}
#menu{display:inline-block}
.bar h1{flex:1;min-width:0}
}
@media print{#sidebar,#shade,.actions,#menu{display:none}body{display:block}.entry{break-inside:avoid-page}}
`;
