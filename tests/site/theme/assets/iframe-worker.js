// A page from the disk may start no Worker: there the search runs in a hidden frame, which looks like one.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.within = frame.contentWindow;
    addEventListener("message", (event) => {
      if (event.source === this.within) this.dispatchEvent(new MessageEvent("message", { data: event.data }));
    });
    const setUp = () => {
      window.postMessage = (message) => parent.postMessage(message, "*");
      window.importScripts = async (...addresses) => {
        for (const src of addresses)
          await new Promise((onload) => document.body.append(Object.assign(document.createElement("script"), { src, onload })));
      };
    };
    this.within.document.open();
    this.within.document.write(`<body><script>(${setUp})()</script><script src="${url}"></script></body>`);
    this.within.document.close();
    this.ready = new Promise((done) => (this.within.onload = done));
  }

  postMessage(data) {
    this.ready.then(() => this.within.dispatchEvent(new MessageEvent("message", { data })));
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = FrameWorker; // by this name the search knows that it is in a frame
  window.Worker = FrameWorker;
}
